"""Lessons: steps that drive the real pages, ask for a prediction, and then compute the answer."""
