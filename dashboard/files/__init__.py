"""The files that a page offers, and their provenance."""
