"""A changed word: two sentences under one checkpoint, side by side on the page Inspect."""
