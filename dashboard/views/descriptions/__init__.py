"""What each head mostly does over the corpus, in a sentence and in examples."""
