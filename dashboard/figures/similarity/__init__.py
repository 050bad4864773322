"""Heads by the similarity of their attention."""
