"""How a fine-tuning run goes."""
