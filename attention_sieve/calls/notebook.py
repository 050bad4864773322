"""Heads in a cell of a notebook."""

from typing import TYPE_CHECKING, Any, Final

from attention_sieve.calls.analyses import settings_of_call
from attention_sieve.calls.given import SHARED, check_keywords, opened, parsed, pass_settings_of, too_long_in, watched
from attention_sieve.core.commands import prepared_texts
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.question import pass_text

if TYPE_CHECKING:
    from attention_sieve.dashboard.standalone.notebook import HeadsWidget

SHOWN: Final = {*SHARED, "roles", "direction", "block_entropy", "scale", "tau", "rule"}
"""Keywords of `show`: those that say something of one text."""


def show(model: Any, texts: Any, *, tokenizer: Any = None, **given: Any) -> "HeadsWidget":
    """Show in a cell of a notebook which roles heads have in texts, and where the heads that you click look.

    The widget has the chosen heads as `heads`, pairs of layer and head, which other cells read, set and observe; and as
    `text` the position of the text that is shown. A notebook that is saved with the state of its widgets
    (in JupyterLab: *Settings, Save Widget State Automatically*) draws it without Python; in any other, and in an HTML
    file without a network, the grid and the arcs remain as pictures, with a table. `close()` takes the widget out of
    the notebook.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        texts: a text, or a list of texts to choose from, each a string or a pair of strings.
        tokenizer: of a model in memory.
        given: keywords as of `roles`: attention, block_entropy, device, direction, dtype, off, roles, rule, scale, tau,
            too_long. Of a text of more tokens than a window holds, its first window is shown.

    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> shown = sieve.show("bundled", "The old dog chased a cat.")
    >>> shown.heads = [(3, 7), (2, 5)]
    >>> shown
    Heads of bundled in 1 text; chosen: L3 H7, L2 H5. Run this cell in a notebook to see them.
    """
    check_keywords("show", given, SHOWN)
    try:
        from attention_sieve.dashboard.standalone.notebook import HeadsWidget
    except ModuleNotFoundError as error:
        if error.name != "anywidget":
            raise
        raise AnalysisError(
            "Heads are shown in notebooks by the package anywidget, which is not installed. Install it with: "
            "pip install anywidget"
        ) from None
    with opened(model, tokenizer, given) as checkpoint:
        settings, pass_settings = (
            settings_of_call(ROLE_ANALYSIS, given, checkpoint.files),
            pass_settings_of(checkpoint, given),
        )
        ROLE_ANALYSIS.question(settings).check(pass_settings.kind)
        read = parsed(texts, given)
        prepared = prepared_texts(checkpoint, read, pass_settings, too_long_in(given))
        work = (
            [pass_text(checkpoint, read[index], tokens, pass_settings, settings.scores)]
            for index, tokens in prepared.items()
        )
        passed = list(watched(work, len(prepared)))
    return HeadsWidget(checkpoint.files, settings, pass_settings.off, passed)
