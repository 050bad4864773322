"""One worker per checkpoint or pair: a queue, batches, models in memory, background loading."""
