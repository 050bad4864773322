"""How antecedent selection is asked for: texts with mentions, from a file or a program, cut to windows."""

import hashlib
import json
from argparse import Namespace
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from attention_sieve.core.answering import Watch
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.coreference.accuracy import BASELINES, CoreferenceScores
from attention_sieve.core.coreference.files import KINDS, read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, MentionText, windows
from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.text import Text, read_bytes, texts_sha256
from attention_sieve.core.usage import Example, Inputs, Option, ReadInputs, Usage
from attention_sieve.core.wording import documents_note

Piece = TypeVar("Piece")
WINDOW_OPTION: Final = {
    "window": Option(
        sentence="longer documents are split at sentence ends into windows of at most this many tokens; default: "
        f"{WINDOW}",
        usual=WINDOW,
        kind=int,
    )
}


@dataclass(frozen=True)
class _Mentions:
    """Texts with mentions, whole."""

    texts: tuple[MentionText, ...]
    sha256: str
    """Of the file, or of the texts of a program."""


def _in_file(options: Namespace, watch: Watch) -> _Mentions:
    content = read_bytes(options.texts)
    return _Mentions(read_mentions(content, _watched(watch, "parsing")), hashlib.sha256(content).hexdigest())


def _given(texts: Any, _: Namespace, __: Callable[[Any], tuple[Text, ...]]) -> _Mentions:
    """Objects as files have them, or what the readers of files return.

    Raises: TextError.
    """
    given = [texts] if isinstance(texts, dict | MentionText) or not isinstance(texts, Iterable) else list(texts)
    read = tuple(text for text in given if isinstance(text, MentionText))
    if not read or len(read) < len(given):
        try:
            read = read_mentions(json.dumps(given).encode())
        except TypeError:
            raise TextError(
                'The texts are no objects with clusters. Write them as {"text": ..., "clusters": ...}.'
            ) from None
    return _Mentions(read, texts_sha256([text.text for text in read]))


def _windows(
    mentions: _Mentions, checkpoint: Checkpoint, options: Namespace, settings: Any, watch: Watch
) -> ReadInputs:
    cut = windows(checkpoint, mentions.texts, options.window, _watched(watch, "cutting"))
    note = f"{cut.n_apart:,} mentions have their antecedents in earlier windows and do not count as cases."
    return ReadInputs(
        inputs=cut.texts,
        settings=settings,
        facts={"texts sha256": mentions.sha256, "window": str(options.window)},
        note=note if cut.n_apart else "",
    )


def _watched(watch: Watch, doing: str) -> Callable[[Iterable[Piece], int], Iterable[Piece]]:
    return lambda items, n_texts: watch(([item] for item in items), n_texts, doing)


def _note(scores: CoreferenceScores, n_documents: int) -> str:
    judged, (layer, head) = scores.judgement, scores.best
    clauses = [
        f"{head_name(layer, head)} is right in {judged.accuracy[0, layer, head]:.1%} of {judged.n_cases[0]:,} cases",
        *(f"{name} in {judged.baselines[baseline, 0]:.1%}" for baseline, name in enumerate(BASELINES)),
    ]
    if judged.held_out is not None:
        held_out = judged.held_out
        clauses.append(
            f"heads chosen on one half of the documents in {held_out.accuracy[0]:.1%} of the other's cases "
            f"({held_out.low[0]:.1%} to {held_out.high[0]:.1%})"
        )
    if scores.n_unread:
        clauses.append(f"{scores.n_unread:,} mentions without a token of their own were left out")
    return f"{'; '.join(clauses)}. {documents_note(n_documents)}"


COREFERENCE_USAGE: Final = Usage(
    details="Documents are the units of intervals and tests, because cases of one text are not independent; with a "
    "single document there are no intervals or tests. A summary is printed to standard error.",
    inputs=Inputs(
        file=f"file of texts with annotated coreference: {KINDS}",
        are_texts=False,
        options=WINDOW_OPTION,
        in_file=_in_file,
        keywords=WINDOW_OPTION,
        given=_given,
        read=_windows,
    ),
    notes=lambda finding: (_note(finding.scores, finding.n_documents),),
    example=Example(texts='[{"text": "Ann left. She was tired.", "clusters": [[[0, 3], [10, 13]]]}]'),
)
