"""Roles: which heads hold which role, tested over many texts."""
