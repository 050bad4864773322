"""The pages: read the controls, ask the cache, draw."""
