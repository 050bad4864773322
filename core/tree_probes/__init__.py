"""Probes that predict dependency trees from the attention of all heads together (Clark 2019)."""
