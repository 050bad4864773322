"""The laboratory: a small model learns, here and within a minute, to continue sequences that repeat."""
