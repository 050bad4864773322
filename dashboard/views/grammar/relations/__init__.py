"""Relations: how well each head finds the syntactic head of a word."""
