"""Heads and coreference: how often a mention attends most to an antecedent (Clark 2019)."""
