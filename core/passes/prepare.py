"""The chain from texts to head roles, one call per stage.

    Text -> PassText -> (pass with observers) -> measures || scores -> tests at tau -> roles

Left of the bar costs a forward pass, depends on checkpoint, texts and pass settings only, and stands here. Right of it
is instant: `core.roles.measures.role_scores`, `core.roles.hypotheses.role_tests`, and what `core.roles.roles` reads off
the tests.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from core.attention.settings import Kind, PassSettings, Window
from core.checkpoints.checkpoint import Checkpoint
from core.errors import AnalysisError, PairNeeded, TextTooLong
from core.passes.texts import PassText
from core.texts.relations import Dependencies, dependencies, parse, token_pairs_of
from core.texts.text import Text
from core.texts.tokens import TokenizedText, TooLong, as_decoder_input, tokenize

REST_OF_SENTENCE: Final = 1000
"""Characters after a cut that are parsed too."""
WINDOW_ENTRIES: Final = 1 << 25
"""Entries of attention kept of one text at most, all layers and heads together."""
WINDOW_TOKENS: Final = 256
"""Tokens of each side of a window at most; where WINDOW_ENTRIES leaves room, a text of so many is kept whole."""


def prepare(
    checkpoint: Checkpoint,
    text: Text,
    settings: PassSettings,
    *,
    position: int | None = None,
    truncate: bool = False,
) -> PassText:
    """One text's tokens, without relations.

    Args:
        checkpoint: loaded.
        text: for an encoder-decoder source and target as a pair; its encoder also takes a text without a target.
        settings: which attention is looked at.
        position: the text's place among those given, for messages.
        truncate: cut a text that is too long instead of raising.

    Raises: TextTooLong; NoTokens; PairNeeded; AnalysisError for an attention or a head that the checkpoint has not.
    """
    check_settings(checkpoint, settings)

    def tokens(part: Text, spare: int = 0) -> TokenizedText:
        most = checkpoint.max_tokens - spare
        return tokenize(part, checkpoint.tokenizer, most, position=position, truncate=truncate)

    if settings.kind == "self":
        return PassText(kind=settings.kind, source=tokens(text))
    if settings.kind == "encoder":
        return PassText(kind=settings.kind, source=tokens(_segment(text, 0)))
    if len(text.segments) < 2:
        raise PairNeeded(position)
    target = tokens(_segment(text, 1), spare=1)  # the start token comes before it
    return PassText(
        kind=settings.kind,
        source=tokens(_segment(text, 0)),
        target=as_decoder_input(target, checkpoint.tokenizer, checkpoint.start_id),
    )


def check_settings(checkpoint: Checkpoint, settings: PassSettings) -> None:
    """Refuse an attention, or a head to switch off, that the checkpoint has not.

    Raises: AnalysisError.
    """
    attention = checkpoint.attentions.get(settings.kind)
    if attention is None:
        raise AnalysisError(
            f"{checkpoint.files.name} has no {settings.kind} attention. Choose: {', '.join(checkpoint.attentions)}."
        )
    for layer, head in settings.off:
        if not (0 <= layer < attention.n_layers and 0 <= head < attention.n_heads):
            raise AnalysisError(
                f"Head L{layer} H{head} cannot be switched off: {checkpoint.files.name} has {attention.n_layers} "
                f"layers x {attention.n_heads} heads. Choose another."
            )


def _segment(text: Text, side: int) -> Text:
    """One segment as a text of its own."""
    own = slice(side, side + 1)
    return Text(
        text.segments[own],
        words=text.words and text.words[own],
        heads=text.heads and text.heads[own],
        relations=text.relations and text.relations[own],
        document=text.document,
        spans=text.spans and text.spans[own],
    )


def queries_text(text: Text, kind: Kind) -> Text:
    """What the queries of a pass read."""
    return text if kind == "self" else _segment(text, 0 if kind == "encoder" else 1)


def with_relations(prepared: Sequence[PassText], texts: Sequence[Text]) -> list[PassText]:
    """The same with the relations of each text on its queries; parsed together, which is much faster than singly.

    Args:
        prepared: from `prepare`; a text that was prepared for several checkpoints is parsed once.
        texts: what they were prepared from.
    """
    numbers: dict[Text, int] = {}
    number_of = {place: numbers.setdefault(text, len(numbers)) for place, text in _read(prepared, texts).items()}
    parses = list(parse(list(numbers)))
    queries = [prepared[place].queries for place in number_of]
    pairs_of = token_pairs_of(queries, [parses[number] for number in number_of.values()])
    pairs = dict(zip(number_of, pairs_of, strict=True))
    return [replace(one, pairs=pairs[place]) if place in pairs else one for place, one in enumerate(prepared)]


def trees(prepared: Sequence[PassText], texts: Sequence[Text]) -> list[tuple[Text, Dependencies] | None]:
    """What the queries of each text read and its dependency trees, parsed together; None for cross-attention.

    Args:
        prepared: from `prepare`.
        texts: what they were prepared from.
    """
    read = _read(prepared, texts)
    parsed = dict(zip(read, dependencies(list(read.values()))))
    return [(read[place], parsed[place]) if place in read else None for place in range(len(prepared))]


def _read(prepared: Sequence[PassText], texts: Sequence[Text]) -> dict[int, Text]:
    """What the parser reads of each text by its place; nothing for cross-attention, whose keys are another text."""
    return {
        place: _as_far_as_kept(queries_text(text, one.kind), one.queries)
        for place, (one, text) in enumerate(zip(prepared, texts))
        if one.kind != "cross"
    }


def _as_far_as_kept(text: Text, tokens: TokenizedText) -> Text:
    """A text that was cut, up to its last token and the rest of a sentence: the parser need not read more."""
    if not tokens.n_cut or text.words is not None or text.spans is not None:
        return text
    ends = (int(tokens.spans[tokens.segments == side, 1].max()) for side in range(len(text.segments)))
    return Text(tuple(segment[: end + REST_OF_SENTENCE] for segment, end in zip(text.segments, ends)))


def window_at(checkpoint: Checkpoint, text: PassText, start: tuple[int, int] = (0, 0)) -> Window:
    """The window of a text that holds some query and key near its start; the whole text where that is short enough.

    Args:
        checkpoint: decides how many entries a window may have.
        text: prepared.
        start: first query and first key; moved back where the window would pass the end.
    """
    attention = checkpoint.attentions[text.kind]
    size = WINDOW_TOKENS
    while attention.n_layers * attention.n_heads * size * size > WINDOW_ENTRIES:
        size //= 2

    def side(first: int, n_tokens: int) -> tuple[int, int]:
        first = max(0, min(first, n_tokens - size))
        return first, min(first + size, n_tokens)

    return Window(side(start[0], len(text.queries.ids)), side(start[1], len(text.keys.ids)))


def prepare_all(
    checkpoint: Checkpoint, texts: Sequence[Text], settings: PassSettings, too_long: TooLong
) -> tuple[dict[int, PassText], list[tuple[int, int]]]:
    """Tokens of each text by its position, and place and length of those left out (`skip` only).

    Raises: TextTooLong for the first such text (`error` only); NoTokens; PairNeeded.
    """
    prepared: dict[int, PassText] = {}
    left_out: list[tuple[int, int]] = []
    for position, text in enumerate(texts):
        try:
            prepared[position] = prepare(checkpoint, text, settings, position=position, truncate=too_long == "truncate")
        except TextTooLong as error:
            if too_long == "error":
                raise
            left_out.append((position, error.n_tokens))
    return prepared, left_out
