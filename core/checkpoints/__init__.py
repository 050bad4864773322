"""From a name or a folder to a loaded checkpoint: files, fingerprint, loading, self-check."""
