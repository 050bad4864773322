"""What heads attend to on the surface."""
