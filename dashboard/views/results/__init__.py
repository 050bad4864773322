"""Pages on a corpus of millions of texts, drawn from its statistics alone."""
