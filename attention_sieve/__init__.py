"""Attention Sieve: what the attention heads of a transformer look at, and what they are good for."""
