"""Trials: one checkpoint probed for one task, each a row of its own, one after the other or elsewhere."""
