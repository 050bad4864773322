"""Every question of core through the worker and the store: what is stored is what a pass computes, for each of them."""

import json
from dataclasses import dataclass, fields, is_dataclass, replace
from threading import Thread

import numpy as np
import pytest
from passing import SELF
from sessions import anew

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.store.store import answer_key
from attention_sieve.core.answering import Question, answer, text_alone
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.coreference.analysis import choice_question
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.importance.nearest import each_off
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import (
    HEAD_OUTPUTS,
    OUTPUT_WEIGHTS,
    MeanOutputs,
    ablation_question,
    relevance_question,
    slopes_question,
    vectors_question,
)
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.pauses import pausing
from attention_sieve.core.relations.analysis import prediction_question
from attention_sieve.core.relations.cases import ParsedText
from attention_sieve.core.roles.question import MATCHED_PAIRS, SCORES, matched_question, scores_question
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.rules import read_role
from attention_sieve.core.similarity.analysis import distance_question
from attention_sieve.core.similarity.distances import DistanceSettings
from attention_sieve.core.surface.analysis import gradient_question, surface_question
from attention_sieve.core.surface.per_text import RowSettings
from attention_sieve.core.texts.relations import dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.analysis import WORD_LINKS
from attention_sieve.core.word_links.pattern import Pattern, PatternText

TEXTS = (
    Text(("the cat sat on the mat, quickly.", "She drinks hot coffee.")),
    Text(("a dog ran.",)),
    Text(("He saw her",), (("He", "saw", "her"),), ((2, 0, 2),), (("nsubj", "root", "obj"),)),
)
LONG = Text(("she ate apples " * 30,))
MENTIONS = read_mentions(
    json.dumps(
        [
            {"text": "Ann saw the dog and she fed it.", "clusters": [[[0, 3], [20, 23]], [[8, 15], [28, 30]]]},
            {"words": ["Bo", "ate", ";", "he", "sat"], "clusters": [[[0, 1], [3, 4]]]},
            {"text": "A bird sang to Cy. Cy sang to it.", "clusters": [[[0, 6], [30, 32]], [[15, 17], [19, 21]]]},
        ]
    ).encode()
)


def parsed(texts=TEXTS):
    return tuple(ParsedText.of(text, tree) for text, tree in zip(texts, dependencies(texts)))


def linked():
    trees = zip(TEXTS, dependencies(TEXTS))
    found = (PatternText.of(text, tree, Pattern(relation="nsubj")) for text, tree in trees)
    return tuple(item for item in found if item is not None)


@dataclass(frozen=True)
class Case:
    question: Question
    items: tuple
    rounding: float = 1e-6
    """Relative error of single precision in the store, and of other batches."""


WRITTEN = read_role('role = 1\nname = "a"\nletter = "G"\ncolour = "#AA3377"\n[to]\nrelative = "earlier copy"\n').id
MEANS = MeanOutputs(np.ones((2, 3, 4)))
CASES = {
    "scores": Case(SCORES, TEXTS),
    "permuted keys": Case(scores_question(ROLES, seed=0), TEXTS, 1e-4),
    "matched pairs": Case(MATCHED_PAIRS, TEXTS),
    "surface": Case(surface_question(RowSettings()), TEXTS),
    "gradients": Case(gradient_question((".", ",")), TEXTS, 1e-4),
    "predictions": Case(prediction_question("mean"), parsed()),
    "coreference": Case(choice_question("mean"), MENTIONS),
    "word links": Case(WORD_LINKS, linked()),
    "heads out, change of the output": Case(ablation_question("output"), TEXTS, 1e-3),
    "heads out, mean in their place": Case(ablation_question("output", means=MEANS), TEXTS, 1e-3),
    "heads alone, loss": Case(ablation_question("lm", alone=True), TEXTS, 1e-4),
    "vectors with heads off": Case(vectors_question(each_off(2, 3)), TEXTS, 1e-4),
    "outputs of heads": Case(HEAD_OUTPUTS, TEXTS, 1e-4),
    "weights of outputs": Case(OUTPUT_WEIGHTS, TEXTS),
    "slopes of the loss": Case(slopes_question("lm"), tuple(map(LabelledText, TEXTS)), 1e-3),
    "relevance": Case(relevance_question("lm"), TEXTS, 1e-3),
    "distances": Case(distance_question(DistanceSettings()), TEXTS),
}
OTHER_SETTINGS = (
    Case(scores_question(ROLES, seed=1), TEXTS, 1e-4),
    Case(matched_question(WRITTEN), TEXTS),
    Case(surface_question(RowSettings(as_in_code=True)), TEXTS),
    Case(surface_question(RowSettings(punctuation=("?",))), TEXTS),
    Case(gradient_question(("?",)), TEXTS, 1e-4),
    Case(prediction_question("first"), parsed()),
    Case(choice_question("first"), MENTIONS),
    Case(distance_question(DistanceSettings(smoothed=True)), TEXTS),
    Case(distance_question(DistanceSettings(rows=3)), TEXTS),
)
"""Questions of these that differ in a setting: other answers to keep, found in the same way."""


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture(scope="module")
def checkpoint(guessing):
    return load_checkpoint(find_checkpoint(str(guessing)), device="cpu")


@pytest.fixture(scope="module")
def engine(checkpoint):
    return Engine(checkpoint.files, "cpu")


def computed(checkpoint, case, settings=SELF):
    """What one pass after the other gives, without a cache."""
    prepared, _ = prepare_all(checkpoint, [case.question.text_of(item) for item in case.items], settings, "error")
    results = dict(one for batch in answer(checkpoint, case.question, case.items, prepared, settings) for one in batch)
    return [results[index] for index in range(len(case.items))]


@pytest.fixture(scope="module")
def expected(checkpoint, case):
    return computed(checkpoint, case)


def check(result, expected, **tolerance):
    if not is_dataclass(expected):
        np.testing.assert_allclose(result, expected, **tolerance)
        return
    for field in fields(expected):
        value, wanted = getattr(result, field.name), getattr(expected, field.name)
        if is_dataclass(wanted):
            check(value, wanted, **tolerance)
        elif isinstance(wanted, np.ndarray):
            np.testing.assert_allclose(value, wanted, err_msg=field.name, **tolerance)
            assert value.shape == wanted.shape
        else:
            assert value == wanted


def test_other_passes_at_every_pause_change_nothing(checkpoint, case, expected):
    """In a thread of their own, as the worker runs them; with a head off, and gradients recorded."""
    other = Case(slopes_question("lm"), (LabelledText(Text(("the dog saw her",))),))
    off, between = PassSettings(off=((0, 1),)), []

    def at_pause():
        thread = Thread(target=lambda: between.append(computed(checkpoint, other, off)))
        thread.start()
        thread.join()

    with pausing(at_pause):
        interrupted = computed(checkpoint, case)
    for result, uninterrupted in zip(interrupted, expected, strict=True):
        check(result, uninterrupted, rtol=1e-5, atol=1e-6)
    assert len(between) >= checkpoint.attentions["self"].n_layers
    (alone,) = computed(checkpoint, other, off)
    for (result,) in between:
        check(result, alone, rtol=1e-5, atol=1e-6)


def test_what_is_kept_is_what_is_computed_and_other_sessions_find_it_without_a_pass(inference, engine, case, expected):
    assert inference.kept(engine, case.question, case.items) is None
    answers = inference.ask(engine, case.question, case.items)
    for result, alone in zip(answers.results, expected, strict=True):
        check(result, alone, rtol=case.rounding, atol=1e-5)
        packed = case.question.pack(alone)  # which loses nothing but double precision
        assert not {"n_tokens", "n_cut"} & set(packed)
        assert not any(array.dtype == np.float64 for array in packed.values())
        check(case.question.unpack(packed), alone, rtol=1e-6)
    assert answers.positions == tuple(range(len(case.items)))
    assert inference.kept(engine, case.question, case.items, PassSettings(off=((0, 1),))) is None
    others = [other for other in (*CASES.values(), *OTHER_SETTINGS) if other is not case]
    assert all(inference.kept(engine, other.question, other.items) is None for other in others)
    later = anew(inference)
    stored = later.kept(engine, case.question, case.items[::-1])
    for result, answered in zip(stored.results, answers.results[::-1], strict=True):
        check(result, answered, rtol=1e-5, atol=1e-6)
    assert later.n_passed == 0


def test_what_entities_are_called_needs_no_new_pass_and_who_refers_to_whom_does(engine, inference):
    """The attention to antecedents depends on which mentions corefer."""
    question, (text, *_) = choice_question("mean"), MENTIONS
    inference.ask(engine, question, [text])
    renamed = tuple(replace(each, entity=f"{each.entity}!", type="nominal") for each in text.mentions)
    inference.ask(engine, question, [replace(text, mentions=renamed)])
    assert inference.n_passed == 1
    one_entity = tuple(replace(each, entity="1") for each in text.mentions)
    assert inference.kept(engine, question, [replace(text, mentions=one_entity)]) is None
    assert inference.kept(engine, question, [replace(text, mentions=text.mentions[:3])]) is None


def test_other_names_of_relations_need_no_new_pass_and_another_tree_or_other_words_do(engine, inference):
    """The attention from a word to its head depends on which word that is."""
    question, text = prediction_question("mean"), TEXTS[2]
    inference.ask(engine, question, parsed((text,)))
    renamed = Text(text.segments, text.words, text.heads, (("dep", "root", "dep"),))
    inference.ask(engine, question, parsed((renamed,)))
    assert inference.n_passed == 1
    corrected = Text(text.segments, text.words, ((0, 1, 2),), (("root", "dep", "dep"),))
    other_words = Text(("He saw  her",), heads=text.heads, relations=text.relations)
    assert inference.kept(engine, question, parsed((corrected,))) is None
    assert inference.kept(engine, question, parsed((other_words,))) is None


@pytest.mark.parametrize("stored", [("predicted",), ("predicted", "has_tokens")])
def test_predictions_that_were_stored_without_every_array_are_computed_anew(stored, engine, inference):
    (item,) = parsed(TEXTS[2:])
    text = {"segments": item.text.segments, "words": item.text.words}
    before = {"text": text, "segments": item.segments, "spans": item.spans, "from word": "mean"}
    named = {} if len(stored) == 1 else {"kept": stored}
    key = answer_key(("predictions", 4), engine.files.fingerprint, engine.dtype, SELF, **before, **named)
    arrays = {"predicted": np.zeros((2, 2, 3, 3), np.int16), "has_tokens": np.zeros(3, bool)}
    entry = {name: arrays[name] for name in stored}
    inference.store.put_many({key: {**entry, "n_tokens": np.array(5), "n_cut": np.array(0)}})
    (result,) = inference.ask(engine, prediction_question("mean"), [item]).results
    assert result.has_tokens.all()
    assert result.predicted.any()
    assert np.isfinite(result.to_head[..., [0, 2]]).all()


def test_answers_that_were_stored_without_attention_are_not_read(engine, inference):
    question, (mentions, *_) = choice_question("mean"), MENTIONS
    heads = [mention.head for mention in mentions.mentions]
    depended_on = {**text_alone(mentions.text), "spans": mentions.spans, "mentions": heads}
    key = answer_key((question.name, question.version), engine.files.fingerprint, engine.dtype, SELF, **depended_on)
    inference.store.put_many({key: {"n_tokens": np.array(5), "n_cut": np.array(0)}})
    assert inference.kept(engine, question, [mentions]) is None
    assert inference.ask(engine, question, [mentions]).results


def test_a_cut_is_told_from_a_word_that_attends_to_nothing(engine, inference):
    items = parsed((LONG, Text(("Cats",))))
    long, alone = inference.ask(engine, prediction_question("mean"), items, too_long="truncate").results
    assert long.has_tokens[0]
    assert not long.has_tokens[-1]
    assert alone.has_tokens.tolist() == [True]
    assert (alone.predicted == -1).all()


def test_words_come_back_as_they_were_given():
    (item,), (tree,) = parsed(TEXTS[:1]), dependencies(TEXTS[:1])
    np.testing.assert_array_equal(item.tree.words.segments, tree.words.segments)
    np.testing.assert_array_equal(item.tree.words.spans, tree.words.spans)
    np.testing.assert_array_equal(item.tree.heads, tree.heads)
    assert item.tree.relations == tree.relations
    assert hash(item) == hash(*parsed(TEXTS[:1]))


def test_distances_take_few_bytes_of_the_store(checkpoint):
    (packed, *_) = map(CASES["distances"].question.pack, computed(checkpoint, CASES["distances"]))
    n_heads = 2 * 3
    assert packed["pairs"].nbytes == 4 * n_heads * (n_heads - 1) // 2
