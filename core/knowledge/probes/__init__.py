"""Linear probes of many vectors at once: fitting, baselines, and code length."""
