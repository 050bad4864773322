"""Which heads attend from one word to another, as a map and a table."""
