"""Descriptions of heads over the corpus: a sentence each, with example texts."""
