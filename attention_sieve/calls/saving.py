"""Heads in one HTML file."""

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from attention_sieve.calls.analyses import settings_of_call
from attention_sieve.calls.given import (
    SHARED,
    all_opened,
    check_keywords,
    kinds_of,
    parsed,
    pass_settings_of,
    too_long_in,
)
from attention_sieve.core.commands import check_output, write
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.usage import ROLE_OPTIONS


def save_page(
    path: str | PathLike[str],
    model: Any,
    texts: Any,
    *,
    compare: Any = None,
    drawn: Any = (),
    tokenizer: Any = None,
    **settings: Any,
) -> Path:
    """Save the heads of a model as one HTML file, which opens without a network; `attention-sieve check` checks it.

    Args:
        path: of the file to write.
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        texts: over which roles are tested: a text, or a list of texts, each a string or a pair of strings.
        compare: another model of the same shape, which is compared with it.
        drawn: the text or texts whose attention is drawn; none for the first of `texts`.
        tokenizer: of models in memory.
        settings: those of `roles`.

    Returns: the file.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> sieve.save_page("heads.html", "bundled", ["The old dog chased a cat.", "She closed the shop."]).name
    'heads.html'
    """
    from attention_sieve.dashboard.saved_page.content import PageRequest, compute
    from attention_sieve.dashboard.saved_page.data import page_data
    from attention_sieve.dashboard.saved_page.file import page_html

    check_keywords("save_page", settings, {*SHARED, *ROLE_OPTIONS, *kinds_of(ROLE_ANALYSIS.settings)})
    output, given = Path(path), (model,) if compare is None else (model, compare)
    check_output(output, (".html",))
    with all_opened(given, tokenizer, settings) as checkpoints:
        request = PageRequest(
            pass_settings=pass_settings_of(checkpoints[0], settings),
            settings=settings_of_call(ROLE_ANALYSIS, settings, checkpoints[0].files),
            texts=parsed(texts, settings),
            drawn=parsed(drawn, settings) if drawn else (),
            too_long=too_long_in(settings),
        )
        html = page_html(page_data(compute(checkpoints, request)))
    write(output, partial(Path.write_text, data=html, encoding="utf-8", newline="\n"))
    return output
