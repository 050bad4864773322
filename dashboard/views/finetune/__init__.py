"""Fine-tune: train a checkpoint on labelled texts and watch the run."""
