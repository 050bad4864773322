"""Progress of a fine-tuning run."""
