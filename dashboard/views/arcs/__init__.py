"""Arcs of the chosen heads for the text on screen, shared by Inspect and Compare."""
