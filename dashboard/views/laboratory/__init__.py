"""Laboratory: train a small model here, and watch its heads form."""
