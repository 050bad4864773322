"""The text on screen: its attention, as it is asked for, stored and kept in memory, and what else is computed about it,
for `Inference.on_screen`, which imports torch late."""

import json
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Engine, ItemRequest, Record, item_requests, read
from attention_sieve.cache.memory import Memory
from attention_sieve.cache.store.store import Store, attention_key
from attention_sieve.core.answering import Arrays, array_to_text, text_to_array
from attention_sieve.core.attention.settings import Head, PassSettings, Reach, Window
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import TextTooLong
from attention_sieve.core.passes.texts import PassText, TextAttention, prepare
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TokenizedText

if TYPE_CHECKING:
    from attention_sieve.core.comparison.swap_output import SwapOutput
    from attention_sieve.core.generation.attribution import Attribution
    from attention_sieve.core.generation.continuation import Continuation
    from attention_sieve.core.passes.outputs import HeadOutput, NextTokens, OutputChange, Prediction

LOOKS_BYTES: Final = 12 * 2**20
"""Limit of the looks in memory, about 80 sentences. They have a memory of their own: every typed text brings one, which
the store holds as it is, and they would push out what takes long to compute."""

Look = tuple[TextAttention, Record]


def look_request(
    engine: Engine, settings: PassSettings, text: Text, truncate: bool, start: tuple[int, int]
) -> ItemRequest:
    """Request for the scores and attention of one text."""
    (request,) = item_requests((engine,), SCORES, [text], (settings,), truncate)
    key = attention_key(engine.files.fingerprint, engine.dtype, settings, start, **SCORES.depends_on(text))
    return replace(request, start=start, attention_key=key)


class Looks:
    """Attention of texts viewed before; thread-safe."""

    def __init__(self, store: Store, session: Callable[[], object | None]) -> None:
        """Begin with none in memory, where each click on a head requests it again; older ones come from the store."""
        self._store, self._memory = store, Memory(LOOKS_BYTES, session)

    def kept(self, request: ItemRequest) -> Look | None:
        """A cached look, or None.

        Raises: TextTooLong if the stored text is truncated and the request does not allow truncation.
        """
        look: Look | None = self._memory.get("look", request)
        if look is None and (record := read(self._store, [request]).get(request)) is not None:
            look = self.remember(request, record)
        if look is not None and look[1].n_cut and not request.truncate:
            n_tokens = look[1].n_tokens
            raise TextTooLong(None, n_tokens, n_tokens - look[1].n_cut)
        return look

    def remember(self, request: ItemRequest, record: Record) -> Look:
        """Keep the result of a pass in memory."""
        if record.attention is None:
            raise RuntimeError("A look was answered without attention.")
        look = unpacked_attention(record.attention), replace(record, attention=None)
        return self._memory.put("look", request, look)


def moved_back(start: tuple[int, int], first_look: TextAttention) -> tuple[int, int]:
    """Actual start of the window requested at `start`; (0, 0) if the window covers the whole text."""

    def side(begin: int, n_tokens: int, window: tuple[int, int]) -> int:
        return max(0, min(begin, n_tokens - (window[1] - window[0])))

    text, window = first_look.text, first_look.window
    queries = side(start[0], len(text.queries.ids), window.queries)
    return queries, side(start[1], len(text.keys.ids), window.keys)


_TOKEN_ARRAYS: Final = ("ids", "type_ids", "spans", "segments", "words", "is_cls", "is_sep")


def packed_attention(attention: TextAttention) -> dict[str, np.ndarray]:
    """Pack attention as float16, which is precise enough for drawing; it is never summed."""
    text = attention.text
    pairs = [(pair.name, pair.dependent.tolist(), pair.head.tolist()) for pair in text.pairs]
    overview = {} if attention.overview is None else {"overview": attention.overview.astype(np.float16)}
    return {
        **_packed_tokens("source", text.source),
        **({} if text.target is None else _packed_tokens("target", text.target)),
        "kind": text_to_array(text.kind),
        "pairs": text_to_array(json.dumps(pairs)),
        "causal": np.array(attention.causal),
        "window": np.array(astuple(attention.window)),
        "block": np.array(attention.block),
        "reaches": text_to_array(json.dumps([astuple(reach) for reach in attention.reaches])),
        "attention": attention.attention.astype(np.float16),
        **overview,
    }


def unpacked_attention(arrays: Arrays) -> TextAttention:
    """The inverse of packed_attention, but for the rounding of the attention."""
    pairs = json.loads(array_to_text(arrays["pairs"]))
    queries, keys = arrays["window"].tolist()
    return TextAttention(
        text=PassText(
            kind=array_to_text(arrays["kind"]),  # type: ignore[arg-type]
            source=_unpacked_tokens("source", arrays),
            target=_unpacked_tokens("target", arrays) if "target ids" in arrays else None,
            pairs=tuple(TokenPair(name, np.array(dependent), np.array(head)) for name, dependent, head in pairs),
        ),
        causal=bool(arrays["causal"]),
        window=Window(tuple(queries), tuple(keys)),
        attention=arrays["attention"].astype(np.float32),
        block=int(arrays["block"]),
        overview=arrays["overview"].astype(np.float32) if "overview" in arrays else None,
        reaches=tuple(Reach(*reach) for reach in json.loads(array_to_text(arrays["reaches"]))),
    )


def _packed_tokens(side: str, tokens: TokenizedText) -> dict[str, np.ndarray]:
    return {
        **{f"{side} {name}": getattr(tokens, name) for name in _TOKEN_ARRAYS},
        f"{side} tokens": text_to_array(json.dumps(tokens.tokens)),
        f"{side} n_cut": np.array(tokens.n_cut),
        **({} if tokens.given is None else {f"{side} given": text_to_array(json.dumps(astuple(tokens.given)))}),
    }


def _unpacked_tokens(side: str, stored: Arrays) -> TokenizedText:
    arrays = {name: stored[f"{side} {name}"] for name in _TOKEN_ARRAYS}
    tokens = json.loads(array_to_text(stored[f"{side} tokens"]))
    given = None
    if f"{side} given" in stored:
        given = _given(json.loads(array_to_text(stored[f"{side} given"])))
    return TokenizedText(given=given, tokens=tuple(tokens), n_cut=int(stored[f"{side} n_cut"]), **arrays)


def _given(fields: list[Any]) -> GivenTokens:
    """Given tokens from their fields in order; those stored before there were chats have no turns."""
    ids, needle, answer, *turns = fields
    spans = None if turns in ([], [None]) else tuple(map(tuple, turns[0]))
    return GivenTokens(tuple(ids), needle and tuple(needle), answer and tuple(answer), spans)


def predicted(checkpoint: Checkpoint, text: Text, settings: PassSettings) -> "Prediction | None":
    """Classes or likeliest tokens for a text, truncated if too long; None for a checkpoint without an output head."""
    from attention_sieve.core.passes.outputs import prediction

    return prediction(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings)


def changed(checkpoint: Checkpoint, text: Text, settings: PassSettings, token: int | None = None) -> "OutputChange":
    """Change of the output for a text, truncated if too long, when heads are switched off; as `output_change`."""
    from attention_sieve.core.passes.outputs import output_change

    return output_change(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, token)


def said(checkpoint: Checkpoint, text: Text, settings: PassSettings, token: int | None = None) -> "HeadOutput | None":
    """What the head of a checkpoint says of a text, truncated if too long; as `head_output`."""
    from attention_sieve.core.passes.outputs import head_output

    return head_output(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, token)


def expected_next(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int | None, asked: str
) -> "NextTokens | None":
    """The likeliest tokens after one token of a text, which is truncated if too long; as `next_tokens`."""
    from attention_sieve.core.passes.outputs import next_tokens

    return next_tokens(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position, asked)


def token_leads(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, heads_off: tuple[tuple[Head, ...], ...], token: int
) -> tuple[float, ...]:
    """The lead of a next token without each of several sets of heads; as `outputs.token_leads`.

    Raises: TextTooLong.
    """
    from attention_sieve.core.passes import outputs

    prepared = prepare(checkpoint, text, settings)
    return outputs.token_leads(checkpoint, prepared, settings.kind, heads_off, token)


def added_to_logit(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int, token: int
) -> "Attribution":
    """What each part adds to the logit of a next token of a text, which is truncated if too long."""
    from attention_sieve.core.importance.passes.direct_path import logit_attribution

    return logit_attribution(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position, token)


def swapped(checkpoint: Checkpoint, text: Text, other: Text, settings: PassSettings) -> "SwapOutput":
    """What changes in the output from one sentence to another.

    Raises: TextTooLong.
    """
    from attention_sieve.core.comparison.swap_output import swap_output

    a, b = (prepare(checkpoint, sentence, settings) for sentence in (text, other))
    return swap_output(checkpoint, (text, other), a, b, settings)


def continued(checkpoint: Checkpoint, prompt: Text, settings: PassSettings, ids: tuple[int, ...]) -> "Continuation":
    """A prompt with the tokens that were written after it; as `continuation`."""
    from attention_sieve.core.generation.continuation import continuation

    return continuation(checkpoint, prompt, settings, ids)


def chat(checkpoint: Checkpoint, text: Text, typed: str) -> Text:
    """Turns of a chat, typed as lines, as the checkpoint reads them. The checkpoint has a chat template; the text is as
    long as what was typed, so that it is known whether the work is short.

    Raises: AnalysisError for turns that the template does not take, or a checkpoint that has none.
    """
    from attention_sieve.core.generation.chat import chat_text, read_turns

    return chat_text(checkpoint, read_turns(typed))


def looked_from(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int
) -> Float[np.ndarray, "layer head key"]:
    """Attention of one token of a text, which is truncated if too long, to every key."""
    from attention_sieve.core.passes.batches import attention_of_token

    return attention_of_token(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position)
