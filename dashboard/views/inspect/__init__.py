"""Inspect: the roles and the attention of every head for the text on screen."""
