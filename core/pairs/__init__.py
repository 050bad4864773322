"""Makes files of pairs of things that people have: brackets of texts and code, uses of names and their definitions."""
