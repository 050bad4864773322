"""Heads as parsers: relations, coreference and probes."""
