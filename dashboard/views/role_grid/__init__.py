"""The roles over a corpus as several pages show them: the grid, the evidence for one head, how they are computed."""
