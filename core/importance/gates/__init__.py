"""L0 gates, trained so that few heads stay open while the predictions stay: Voita et al. 2019."""
