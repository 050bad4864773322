"""The Heads Hypothesis: sieves, sieve bias scores, tests, head roles and their overlaps."""
