"""Trials: one checkpoint probed for one task, each stored as one row; run in this process or on an engine."""
