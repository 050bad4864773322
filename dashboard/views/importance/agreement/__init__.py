"""Whether cheaper measures order heads as switching each of them off does."""
