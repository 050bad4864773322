"""Word links: which heads attend from one word to another."""
