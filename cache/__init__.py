"""Caches results in memory and on disk, and serves the requests of all sessions."""
