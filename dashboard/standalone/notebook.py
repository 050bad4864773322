"""Heads in texts as a widget of notebooks: the grid and the arcs of the dashboard in a cell. Imports anywidget."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import anywidget
import numpy as np
import pandas as pd
import traitlets

from attention_sieve.core.attention.settings import Head, head_name, head_names
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.roles import role_title, shown_roles
from attention_sieve.core.roles.sieves import telling_head
from attention_sieve.dashboard.components import arcs, grid
from attention_sieve.dashboard.components.grid import GridOnText, grid_of_text, pictures_of, sieves_in
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, arcs_svg, sides
from attention_sieve.dashboard.standalone import script, theme_variables
from attention_sieve.dashboard.standalone.linked_text import text_data

MOST_WEIGHTS: Final = 50_000_000
"""Maximum number of weights of all texts, a byte each: a notebook that is saved with its widgets holds them all."""
_FILE: Final = Path(__file__)
_CELL: Final = {
    "html": _FILE.with_suffix(".html").read_text("utf-8"),
    "css": "\n".join(
        (
            f".cell {{\n{theme_variables('light')}\n}}\n.cell.dark {{\n{theme_variables('dark')}\n}}",
            _FILE.with_suffix(".css").read_text("utf-8"),
        )
    ),
}


class HeadsWidget(anywidget.AnyWidget):
    """The roles of all heads in one text or several, beside where the chosen heads look; a click chooses heads."""

    heads = traitlets.List(
        traitlets.Tuple(traitlets.Int(), traitlets.Int()),
        help="The chosen heads, as pairs of layer and head, in the order in which they were chosen.",
    ).tag(sync=True)
    text = traitlets.Int(help="Position of the text that is shown, from 0.").tag(sync=True)
    _data = traitlets.Unicode().tag(sync=True)
    _still = traitlets.Unicode().tag(sync=True)
    """Id of what stands beside the widget, which hides it while it is drawn."""
    _esm = "\n".join(
        (
            script([grid.SOURCE, arcs.SOURCE]),
            f"const CELL = {json.dumps(_CELL)};",
            _FILE.with_suffix(".js").read_text("utf-8"),
        )
    )

    def __init__(
        self,
        files: CheckpointFiles,
        settings: RoleSettings,
        off: Sequence[Head],
        passed: Sequence[PassedText],
    ) -> None:
        """Show texts, the first one at first, and in it the head that attends most specifically to related words.

        Raises: AnalysisError for more than MOST_WEIGHTS weights.
        """
        n_weights = sum(each.text_attention.attention.size for each in passed)
        if n_weights > MOST_WEIGHTS:
            raise AnalysisError(
                f"The attention in {counted(len(passed), 'text')} has {n_weights:,} weights, and a cell shows at most "
                f"{MOST_WEIGHTS:,}. Show fewer or shorter texts."
            )
        first = passed[0].text_attention
        self._name, self._n_texts, self._shape = files.name, len(passed), first.attention.shape[:2]
        self._passed, self._grids = passed, [_grid(files, settings, off, each) for each in passed]
        shown = [_shown(files, settings, grid, each) for grid, each in zip(self._grids, passed)]
        super().__init__(heads=[telling_head(first)], _data=json.dumps(shown), _still=uuid4().hex)

    def _ipython_display_(self) -> None:
        """Show the widget, and below it a still that a notebook keeps: many are saved without the state of widgets, and
        where there is no network, an HTML file of a notebook draws none.
        """
        from IPython.display import HTML, display  # a notebook has it

        bundle = None if self.comm is None else self._repr_mimebundle_()
        if bundle is None:  # closed
            display({"text/plain": repr(self)}, raw=True)
            return
        data, metadata = bundle
        display(data, metadata=metadata, raw=True)
        display(HTML(f'<div data-still="{self._still}">\n{self.still()}\n</div>'))

    def still(self) -> str:
        """The text that is shown, with the chosen heads, as HTML without a script: two pictures and a table."""
        passed = self._passed[self.text]
        return still(self._grids[self.text], passed, self.heads, _name(passed))

    def __repr__(self) -> str:
        """What is read where no notebook draws it: in a terminal, and in a saved notebook without its widgets."""
        drawn = (
            "Closed: call show again to see them." if self.comm is None else "Run this cell in a notebook to see them."
        )
        heads = f"Heads of {self._name} in {counted(self._n_texts, 'text')}; chosen: {head_names(self.heads) or 'none'}"
        return f"{heads}. {drawn}"

    @traitlets.validate("heads")
    def _check_heads(self, proposal: Any) -> Any:
        layers, heads = self._shape
        if missing := [head for head in proposal["value"] if not (0 <= head[0] < layers and 0 <= head[1] < heads)]:
            raise AnalysisError(
                f"There is no {head_names(missing)} in {self._name}. Choose among {layers} layers of {heads} heads, "
                "counted from 0."
            )
        return proposal["value"]

    @traitlets.validate("text")
    def _check_text(self, proposal: Any) -> Any:
        if not 0 <= proposal["value"] < self._n_texts:
            raise AnalysisError(f"There is no text {proposal['value']}. Choose one from 0 to {self._n_texts - 1}.")
        return proposal["value"]


def _name(passed: PassedText) -> str:
    return shortened(" ||| ".join(passed.text.segments))


def _grid(files: CheckpointFiles, settings: RoleSettings, off: Sequence[Head], passed: PassedText) -> RoleGrid:
    of_text = grid_of_text(passed, settings.criterion, f"Heads of {files.name}: roles on this text", files.n_shared)
    return replace(of_text, shown=shown_roles(passed.scores, passed.scored.roles)[0], off=off)


def _shown(files: CheckpointFiles, settings: RoleSettings, of_text: RoleGrid, passed: PassedText) -> dict[str, Any]:
    sieves = sieves_in(passed.text_attention, passed.text, passed.scored.roles, settings.scores.direction)
    _, fine = shown_roles(passed.scores, passed.scored.roles)
    return {
        "name": _name(passed),
        "grid": grid.grid_data(of_text, GridOnText(pictures=pictures_of(passed.text_attention, sieves))),
        "fine": [of_text.roles.index(role) for role in fine],
        "data": text_data(passed.text_attention, passed.text, sieves, files.name),
    }


def still(grid: RoleGrid, passed: PassedText, heads: Sequence[Head], name: str) -> str:
    """A grid and the arcs of some heads in a text as HTML, with a table of the heads that have a role in it.

    Args:
        name: of the text.
    """
    chosen = head_names(heads)
    images = [_image(grid_svg(grid, chosen=heads), f"{grid.label}; chosen: {chosen or 'none'}")]
    if heads:
        svg = arcs_svg(_maps(passed, heads), title=f"Attention of {chosen}", caption=[name])
        images.append(_image(svg, f"Where {chosen} look in: {name}"))
    table = _table(grid).to_html(index=False, border=0)
    return "\n".join([*images, f"<details><summary>Heads with a role in this text</summary>{table}</details>"])


def _image(svg: str, says: str) -> str:
    data = base64.b64encode(svg.encode()).decode()
    return f'<img alt="{escape(says)}" style="max-width: 100%" src="data:image/svg+xml;base64,{data}">'


def _maps(passed: PassedText, heads: Sequence[Head]) -> AttentionMaps:
    looked = passed.text_attention
    queries, keys = sides(looked)
    attention = [np.nan_to_num(looked.attention[head], nan=0) for head in heads]
    return AttentionMaps(
        queries=queries, keys=keys, attention=np.array(attention), heads=heads, causal=looked.causal, label=""
    )


def _table(grid: RoleGrid) -> pd.DataFrame:
    """The heads with a role, and their scores of these roles."""
    unit = "scores" if grid.scale == "score" else "shares"
    scores = grid.scores.transpose(1, 2, 0)
    rows = [
        (head_name(*head), ", ".join(f"{role_title(grid.roles[role])} {scores[head][role]:.2f}" for role in held))
        for head in np.ndindex(scores.shape[:2])
        if (held := np.flatnonzero(grid.holds[:, *head]).tolist())
    ]
    return pd.DataFrame(rows, columns=["head", f"roles, with their {unit}"])
