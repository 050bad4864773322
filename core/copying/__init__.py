"""Whether heads copy: where they look, what they write, and whether it matters."""
