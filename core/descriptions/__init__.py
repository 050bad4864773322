"""Describes what each head mostly does over a corpus, from the results of other analyses."""
