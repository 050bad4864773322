"""Corpora of millions of texts: split into shards, scored anywhere, and told in statistics that can be added."""
