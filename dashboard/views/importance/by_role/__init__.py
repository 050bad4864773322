"""Which roles the important heads hold."""
