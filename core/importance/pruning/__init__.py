"""Pruning curves: a score as heads are removed, and the functions of the remaining heads."""
