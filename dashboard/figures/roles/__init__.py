"""Scores, tests, roles and their overlaps."""
