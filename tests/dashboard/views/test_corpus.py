"""What is kept in memory of a corpus."""

import gc
import weakref

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import corpus

CHOSEN = Choice(
    checkpoint=BUNDLED,
    device="cpu",
    dtype="float32",
    kind="encoder",
    off=(),
    corpus=controls.UPLOAD,
    criterion=Criterion(tau=2.0),
    score_settings=ScoreSettings(),
)
TEXTS = (
    "The nurse washed it.",
    "A dog chased them.",
    "He sold his van.",
    "We ate late.",
    "It rained.",
    "She ran home.",
)


def found_in(folder):
    """What is found in the texts, and the measures that it is found from."""
    inference, texts = Inference(Store(folder)), tuple(Text((text,)) for text in TEXTS)
    engine = Engine(find_checkpoint(BUNDLED))
    request = FindingRequest(engine, ROLE_ANALYSIS, texts, ROLE_ANALYSIS.settings, engine.settings(None))
    found = inference.find(request)
    answers = inference.ask(engine, SCORES, texts)
    inference.close()
    inference.store.close()
    return found, weakref.ref(answers)


def test_nothing_that_is_kept_of_a_corpus_holds_its_measures(tmp_path):
    """They would count with each of the numbers of which thousands stay in memory."""
    found, measured = found_in(tmp_path)
    tested = corpus.judged(found, CHOSEN)
    stability, low = tested.stability(), tested.with_intervals().low
    assert stability is not None
    assert corpus.judged(found, CHOSEN).stability() is stability
    assert corpus.judged(found, CHOSEN).with_intervals().low is low
    gc.collect()
    assert measured() is None


def test_equal_texts_count_once_and_the_page_says_how_many(app):
    at = app("roles", corpus_text="\n".join((*TEXTS, *[TEXTS[0]] * 20)))
    assert any("Equal texts count once: 20 of 26 repeat others." in each.value for each in at.markdown)
