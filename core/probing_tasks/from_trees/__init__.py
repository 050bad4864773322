"""Ten probing tasks made from dependency trees, after those of Conneau et al. 2018."""
