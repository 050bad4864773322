"""How differently any two heads attend: distances, a map and a dendrogram."""
