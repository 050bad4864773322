"""Shared parts of pages that show a corpus of millions of texts, from its statistics alone."""
