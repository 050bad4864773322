"""Checkpoints, hub downloads and results folders that this server offers."""
