"""The arcs of the text on screen: where the chosen heads look. Inspect and Compare share them."""
