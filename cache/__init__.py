"""What has been computed is never computed again."""
