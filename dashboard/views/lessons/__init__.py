"""Lessons: steps on the real pages that ask for a prediction and then compute the answer."""
