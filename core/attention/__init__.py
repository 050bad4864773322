"""Observes the attention of any model during a forward pass: the registered attention function, masks, observers."""
