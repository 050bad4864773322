"""Training and scores of probes."""
