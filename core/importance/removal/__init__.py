"""Checkpoints without some of their heads: cut out of the weights, or set to 0."""
