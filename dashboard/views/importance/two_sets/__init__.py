"""Whether heads matter alike on two sets of texts."""
