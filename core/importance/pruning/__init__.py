"""Pruning curves: a score while heads are removed, and the functions that stay."""
