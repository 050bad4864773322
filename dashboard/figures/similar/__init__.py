"""Heads by how alike they attend."""
