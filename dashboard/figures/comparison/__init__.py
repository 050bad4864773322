"""Two or more checkpoints: changes, shifts, steps."""
