"""What the pass costs, as ratios measured side by side in one run: `python -m benchmarks.<name>`."""
