"""Evidence for roles over typed texts, which stays valid while the reader looks and adds texts."""
