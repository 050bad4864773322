"""Surface statistics of attention (Clark 2019, Voita 2019): kinds of tokens, offsets, rare words."""
