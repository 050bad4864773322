"""Figures of the page Knowledge."""
