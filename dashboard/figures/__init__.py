"""Turns results into figures; independent of any page."""
