"""Words first: choose one or two words, and see which heads link them."""
