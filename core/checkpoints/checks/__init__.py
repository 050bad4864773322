"""Checks of a checkpoint: files, tokenizer and size before the model is built, weights and attention afterwards."""
