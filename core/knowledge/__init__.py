"""What each head knows: probing tasks, as in Transformer Anatomy (Jo & Myaeng 2020)."""
