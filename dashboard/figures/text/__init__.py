"""Attention of one text as arcs."""
