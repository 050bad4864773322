"""Corpora in shards: their speed, and whether results are identical to the last byte."""
