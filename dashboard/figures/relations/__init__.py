"""Heads against dependency trees."""
