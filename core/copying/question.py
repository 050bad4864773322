"""Questions about copying: published scores of where heads look, what they write, and the loss on second copies."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import Question, in_single_precision, text_alone, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.copying.published import second_copies
from attention_sieve.core.copying.writes import TextWrites
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.texts.text import Text

WHY_NOT: Final = "Copying is a matter of models that write the next token, of one stack. Choose such a decoder."


@cache
def looks_question(role: str) -> Question[Text, Float[np.ndarray, "detector layer head"]]:
    """Question: the scores of DETECTORS by the tokens that a role looks at."""

    def compute(
        checkpoint: Checkpoint, _: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Float[np.ndarray, "detector layer head"]]]]:
        from attention_sieve.core.copying.observer import PublishedLooks
        from attention_sieve.core.passes.batches import collect

        return collect(checkpoint, prepared, settings, partial(PublishedLooks, checkpoint, role=BY_NAME[role]))

    return Question(
        name=f"copying, published scores of {role}",
        text_of=text_itself,
        depends_on=lambda text: {**text_alone(text), "version": BY_NAME[role].version},
        compute=compute,
        pack=lambda result: {"looks": result.astype(np.float32)},
        unpack=lambda arrays: arrays["looks"],
        kinds=ONE_STACK,
        why_not=WHY_NOT,
        version=2,
    )


def _writes(
    checkpoint: Checkpoint, _: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextWrites]]]:
    from attention_sieve.core.copying.observer import text_writes

    return text_writes(checkpoint, prepared, settings)


WRITES: Final[Question[Text, TextWrites]] = Question(
    name="copying, what heads write",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_writes,
    pack=lambda result: {"shares": result.shares.astype(np.float32), "n_sample": np.array(result.n_tokens)},
    unpack=lambda arrays: TextWrites(shares=arrays["shares"], n_tokens=int(arrays["n_sample"])),
    kinds=ONE_STACK,
    why_not=WHY_NOT,
    version=2,
)
"""Question: how much of what each head raises falls on the token that it looks at."""


def _signs(
    checkpoint: Checkpoint, _: Sequence[Text], prepared: Sequence[PassText], __: PassSettings
) -> Iterator[list[tuple[int, Float[np.ndarray, "layer head"]]]]:
    from attention_sieve.core.importance.passes.ov_circuit import ov_signs

    for row, text in enumerate(prepared):
        yield [(row, ov_signs(checkpoint, text))]


OV_SIGNS: Final[Question[Text, Float[np.ndarray, "layer head"]]] = Question(
    name="copying, signs of OV circuits",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_signs,
    pack=lambda result: {"signs": result.astype(np.float32)},
    unpack=lambda arrays: arrays["signs"].astype(float),
    kinds=ONE_STACK,
    why_not=WHY_NOT,
    version=2,
)
"""Question: sum of the eigenvalues of each head's OV circuit over that of their moduli, the same for every text."""


def _second_copy(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextOutcomes]]]:
    """Texts are passed up to the end of their last second copy: what follows changes nothing there."""
    from attention_sieve.core.importance.passes.sweep import Sweep, sweep

    attention = checkpoint.attentions[settings.kind]
    nothing = np.full((attention.n_layers, attention.n_heads, 1), np.nan)
    cut: dict[int, PassText] = {}
    for row, text in enumerate(prepared):
        after = tuple(second_copies(text.queries.ids).tolist())
        if not after:
            yield [(row, TextOutcomes(full=np.full(1, np.nan), without=nothing))]
            continue
        kept = slice(after[-1] + 2)
        source = replace(text.source, **{name: getattr(text.source, name)[kept] for name in ("ids", "type_ids")})
        cut[row] = replace(text, source=source, predicts_after=after)
    if cut:
        rows = list(cut)
        for batch in sweep(checkpoint, list(cut.values()), settings, Sweep(metric="lm")):
            yield [(rows[index], outcomes) for index, outcomes in batch]


SECOND_COPY: Final[Question[Text, TextOutcomes]] = Question(
    name="copying, loss on second copies, heads out",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_second_copy,
    pack=in_single_precision,
    unpack=lambda arrays: TextOutcomes(**arrays),
    kinds=ONE_STACK,
    why_not=WHY_NOT,
    version=2,
)
"""Question: loss on the tokens that complete a pair for the second time, with each head off; NaN for texts without."""
