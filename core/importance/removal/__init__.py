"""Checkpoints without some of their heads: sliced out of the weights, or with weights set to 0."""
