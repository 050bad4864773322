"""Heads against mentions that corefer."""
