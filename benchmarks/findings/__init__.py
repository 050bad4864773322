"""Findings about heads; what each script printed is kept in `printed` and shown in README.md."""
