"""Checks against published numbers, for a machine that reaches the hub."""
