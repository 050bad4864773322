"""Heads in real notebooks, for an environment that has them."""
