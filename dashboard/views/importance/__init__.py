"""Importance: which heads a checkpoint needs, for what."""
