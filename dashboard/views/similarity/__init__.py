"""Similar heads: which heads attend alike."""
