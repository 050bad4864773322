"""Figures about heads that the README reports."""
