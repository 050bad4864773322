"""The user's texts: readers for each file format, tokens, words and dependency relations."""
