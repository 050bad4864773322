"""Word links: which heads look from one word to another."""
