"""Surface statistics of attention."""
