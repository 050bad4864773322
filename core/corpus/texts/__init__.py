"""The texts of a corpus: what they are read from, and the shards that they are written in."""
