"""Importance of each head."""
