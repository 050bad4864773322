"""Progress of long work on standard error: a bar in a terminal, elsewhere a line with a forecast now and then."""

import sys
from collections.abc import Iterable
from typing import Any, Final

from tqdm import tqdm

EVERY: Final = 10.0
"""Seconds to the first line, and from one to the next."""
LINE: Final = "{n_fmt} of {total_fmt} {unit}s after {elapsed}, about {remaining} to go{postfix}"
LINE_WITHOUT_END: Final = "{n_fmt} {unit}s after {elapsed}{postfix}"


class ProgressBar(tqdm):
    """tqdm's bar, or its numbers as lines where standard error is no terminal, such as a file or a pipe."""

    total: float | None
    desc: str

    def __init__(self, work: Iterable[Any] | None = None, **options: Any) -> None:
        self._is_bar = sys.stderr.isatty()
        if not self._is_bar:
            options |= {"delay": EVERY, "mininterval": EVERY, "miniters": 1, "leave": False}
        super().__init__(work, **options)

    def display(self, msg: str | None = None, pos: int | None = None) -> bool:
        """Show the present state; overrides tqdm's, which moves the cursor."""
        if self._is_bar:
            return super().display(msg, pos)
        if msg is None:
            line = LINE if self.total else LINE_WITHOUT_END
            self.desc = self.desc.removesuffix(": ")  # which only `set_description` adds
            self.bar_format = f"{{desc}}: {line}" if self.desc else line
            print(self, file=self.fp, flush=True)
        return False

    def reach(self, n_done: int, n_all: int | None = None) -> None:
        """Show that so many units are done, of so many in all where that is known."""
        self.total = n_all or self.total
        self.update(n_done - self.n)
