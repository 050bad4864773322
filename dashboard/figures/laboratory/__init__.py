"""Figures of the laboratory."""
