"""Gates on heads, trained so that as many as possible close: L0 pruning."""
