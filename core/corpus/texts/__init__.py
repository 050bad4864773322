"""The texts of a corpus: their input files, and the shards that they are written to."""
