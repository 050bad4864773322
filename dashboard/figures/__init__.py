"""Results to figures; these know no page."""
