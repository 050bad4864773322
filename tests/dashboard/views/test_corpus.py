"""What is kept in memory of a corpus."""

import gc
import weakref

from attention_sieve.cache.engine import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.recent import Recent
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
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


def measured(folder):
    inference = Inference(Store(folder))
    answers = inference.ask(Engine(find_checkpoint(BUNDLED)), SCORES, tuple(Text((text,)) for text in TEXTS))
    inference.close()
    inference.store.close()
    return answers


def test_small_numbers_that_are_kept_of_a_corpus_do_not_keep_its_measures(tmp_path, monkeypatch):
    """Only their own size is counted, so that thousands of them stay in memory."""
    monkeypatch.setattr(corpus, "_judged", Recent(corpus.JUDGED_BYTES, corpus.JUDGED_ALWAYS))
    answers = measured(tmp_path)
    tested = corpus.judged((answers,), CHOSEN)
    stability, low = tested.stability(), tested.with_intervals().low
    assert stability is not None
    assert corpus.judged((answers,), CHOSEN).stability() is stability
    assert corpus.judged((answers,), CHOSEN).with_intervals().low is low
    for others in range(corpus.JUDGED_ALWAYS):
        corpus._judged.put(others, None, corpus.JUDGED_BYTES)
    left = weakref.ref(answers)
    del answers, tested
    gc.collect()
    assert left() is None
