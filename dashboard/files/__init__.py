"""The files that a page offers, and what they say about where they come from."""
