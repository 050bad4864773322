"""What each head mostly does over a corpus, from what other analyses know of it."""
