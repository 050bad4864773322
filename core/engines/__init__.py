"""Runs many pieces of work in several processes: on this machine, or on a Ray cluster."""
