"""How probes learn and how well they do."""
