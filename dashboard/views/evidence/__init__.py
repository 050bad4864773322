"""Evidence for roles over typed texts, which stays valid while the reader looks at results and adds texts."""
