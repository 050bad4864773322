"""Heads as parsers: how often a head attends most to a word's syntactic head (Clark 2019, Voita 2019)."""
