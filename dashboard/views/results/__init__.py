"""What pages share that show a corpus of millions of texts, from its statistics alone."""
