"""Surface: what heads attend to on the surface of texts."""
