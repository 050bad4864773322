"""Text that a causal language model writes, token by token, with the attention of every head at each token."""
