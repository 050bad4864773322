"""Compare: two or more checkpoints on the same texts."""
