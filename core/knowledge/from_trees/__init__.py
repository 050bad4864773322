"""Ten probing tasks made from dependency trees, modelled on those of Conneau et al. 2018."""
