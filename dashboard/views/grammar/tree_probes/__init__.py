"""Probes: how well parse trees are predicted from all heads together."""
