"""Fine-tuning a checkpoint on labelled texts, with its saved steps."""
