"""Tables in Markdown, printed a row at a time."""


def header(*columns: str) -> None:
    """The first two lines of a table, after an empty one, which Markdown needs."""
    print(f"\n| {' | '.join(columns)} |\n|{'|'.join(['---'] * len(columns))}|")


def row(*cells: object) -> None:
    print(f"| {' | '.join(map(str, cells))} |", flush=True)
