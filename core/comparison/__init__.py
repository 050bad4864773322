"""Two or more checkpoints on the same texts: what differs between them."""
