"""*Save this page*: what a page shows as one HTML file, which opens without a network."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.passes.texts import WINDOW_TOKENS, TextAttention
from attention_sieve.core.roles.finding import RoleSettings, role_finding
from attention_sieve.core.roles.measures import RoleScores
from attention_sieve.core.texts.equal import text_numbers
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.files.downloads import offer_page
from attention_sieve.dashboard.saved_page.asked import MOST_WEIGHTS, Asked, NamedCheckpoint
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit

if TYPE_CHECKING:
    from attention_sieve.dashboard.saved_page.content import Content


@dataclass(frozen=True, eq=False)
class ScoredTexts:
    """Texts with their scores under each checkpoint."""

    texts: tuple[Text, ...]
    n_tokens: Sequence[int]
    scores: Sequence[RoleScores]
    chosen: tuple[Head, ...]
    """The heads that the reader has chosen."""
    truncated: bool
    """Whether texts that are too long were cut."""


def save_heads(
    visit: Visit, tested: Corpus, heads: Sequence[Head], looked: tuple[Text, TextAttention] | None = None
) -> None:
    """Offer the heads of a checkpoint, as tested over the corpus, with the attention in a text.

    Args:
        looked: the text on screen with its attention; the first text of the corpus that fits is drawn if that is in
            windows, or if there is none.
    """
    texts = tuple(visit.texts[position] for position in tested.found.positions)
    scored = ScoredTexts(texts, tested.found.n_tokens, [tested.finding.scored], tuple(heads), policy() == "truncate")
    is_whole = looked is not None and looked[1].overview is None
    drawn = looked if looked is not None and is_whole else None
    text = drawn[0] if drawn else first_that_fits(scored)
    if text is None:
        return

    def content() -> "Content":
        attention = drawn[1] if drawn else attention_in(visit.inference, visit.engine, text, visit.settings)
        return content_of(visit.choice, [visit.engine], visit.settings, scored, (text, [attention]))

    offer_page([visit.engine.files.name], partial(html_of, content))


def html_of(content: Callable[[], "Content"]) -> bytes:
    """The page of a content, which is computed when it is asked for."""
    from attention_sieve.dashboard.saved_page.data import page_data  # for a click, not for every run of a page
    from attention_sieve.dashboard.saved_page.file import page_html

    return page_html(page_data(content())).encode()


def content_of(
    choice: Choice,
    engines: Sequence[Engine],
    pass_settings: PassSettings,
    scored: ScoredTexts,
    drawn: tuple[Text, Sequence[TextAttention]],
) -> "Content":
    """What a page of the same settings would compute; roles are decided by the test, whatever texts came before."""
    from attention_sieve.dashboard.saved_page.content import Content, Found

    text, attentions = drawn
    is_cut = any(side.n_cut for each in attentions for side in (each.text.queries, each.text.keys))
    asked = Asked(
        checkpoints=tuple(NamedCheckpoint.of(engine.files) for engine in engines),
        dtype=engines[0].dtype,
        attention=pass_settings.kind,
        off=pass_settings.off,
        settings=RoleSettings(choice.score_settings, choice.criterion),
        texts=scored.texts,
        drawn=(text,),
        chosen=scored.chosen,
        truncated=is_cut or scored.truncated,
        parser=trees_source([*scored.texts, text]),
    )
    found = [
        Found(
            finding=role_finding(scores, choice.criterion, numbers=text_numbers(scored.texts)),
            drawn=(attention,),
            removed=engine.files.removed_of(pass_settings.kind),
            n_shared=engine.files.n_shared,
        )
        for engine, scores, attention in zip(engines, scored.scores, attentions, strict=True)
    ]
    return Content(asked=asked, found=tuple(found), n_tokens=tuple(scored.n_tokens))


def attention_in(inference: Inference, engine: Engine, text: Text, pass_settings: PassSettings) -> TextAttention:
    """The attention in a text, which is cut if it is too long."""
    return inference.look(engine, text, pass_settings, too_long="truncate")[0]


def first_that_fits(scored: ScoredTexts) -> Text | None:
    """The first text whose attention a page holds under each checkpoint, and the store without windows."""
    most = min(WINDOW_TOKENS**2, MOST_WEIGHTS // sum(scores.scores[0, 0].size for scores in scored.scores))
    return next((text for text, n_tokens in zip(scored.texts, scored.n_tokens) if n_tokens**2 <= most), None)
