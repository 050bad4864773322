"""Means, confidence intervals, tests and corrections; independent of torch and of texts."""
