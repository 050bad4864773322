"""The hand-made views: a Python face with html, css and js beside it."""
