"""Corpora in shards: how fast, and whether the bytes are the same."""
