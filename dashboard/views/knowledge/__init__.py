"""What each head knows: probing tasks, head by head."""
