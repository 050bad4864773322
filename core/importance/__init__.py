"""How much each head matters for a metric, and checkpoints without the heads that do not matter."""
