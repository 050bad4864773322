"""Prepares texts, batches them, and runs observed forward passes."""
