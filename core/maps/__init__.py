"""Attention maps as files for other programs."""
