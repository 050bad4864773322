"""Corpora of millions of texts: split into shards, analysed on any number of machines, and summarised as sums that can
be merged."""
