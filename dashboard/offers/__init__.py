"""What this server offers to choose from: checkpoints, those of the hub, and results folders."""
