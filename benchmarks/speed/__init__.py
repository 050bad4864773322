"""How long something takes, as a ratio to what it is measured against in the same run."""
