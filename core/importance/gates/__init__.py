"""L0 gates, trained to close as many heads as possible while predictions stay the same: Voita et al. 2019."""
