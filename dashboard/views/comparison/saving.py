"""*Save this page* on Compare."""

from functools import partial

from attention_sieve.cache.inference import Inference
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.files.downloads import offer_page
from attention_sieve.dashboard.saved_page.content import Content
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.comparison.numbers import CheckpointFocus, all_heads_on
from attention_sieve.dashboard.views.saving import ScoredTexts, attention_in, content_of, first_that_fits, html_of


def save_comparison(inference: Inference, focus: CheckpointFocus, text: Text | None) -> None:
    """Offer both checkpoints, of one shape; without a text, the first of the corpus that fits is drawn."""
    choice, pair = focus.choice, focus.pair
    scored = ScoredTexts(
        focus.texts, pair.scored.n_tokens, pair.scored.sides, tuple(focus.heads), policy() == "truncate"
    )
    drawn = text or first_that_fits(scored)
    of_pass, of_other = (all_heads_on(choice, engine) for engine in pair.engines)
    if drawn is None or of_pass != of_other:
        return

    def content() -> Content:
        attentions = [attention_in(inference, engine, drawn, of_pass) for engine in pair.engines]
        return content_of(choice, pair.engines, of_pass, scored, (drawn, attentions))

    offer_page([engine.files.name for engine in pair.engines], partial(html_of, content))
