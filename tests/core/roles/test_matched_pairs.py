"""Syntactic roles against pairs of words at the same distance that no relation joins."""

from dataclasses import replace

import numpy as np
import pytest
from passing import pass_texts, whole_map
from scipy import stats

from attention_sieve.core.analysis import results
from attention_sieve.core.answering import answer
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import with_relations
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.matched_pairs import TextMatches, joined_tests, matched_tests
from attention_sieve.core.roles.measures import DIRECTIONS, SYNTACTIC, SYNTACTIC_MEASURES, ScoreSettings, role_scores
from attention_sieve.core.roles.question import MATCHED_PAIRS, SCORES, matched_questions, scores_question
from attention_sieve.core.roles.roles import ROLES, role_named
from attention_sieve.core.roles.rules import read_role
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.samples import read_sample


def gold(words, heads, relations):
    return Text((" ".join(words),), (tuple(words),), (tuple(heads),), (tuple(relations),))


TEXTS = [
    gold(
        ("the", "black", "cat", "saw", "a", "dog", ",", "quickly"),
        (3, 3, 4, 0, 6, 4, 4, 4),
        ("det", "amod", "nsubj", "root", "det", "obj", "punct", "advmod"),
    ),
    gold(("He", "saw", "red", "apples"), (2, 0, 4, 2), ("nsubj", "root", "amod", "obj")),
    gold(("dogs", "ran"), (2, 0), ("nsubj", "root")),
]
"""In the last no pair of words at the distance of its relation is left."""


def brute_force(checkpoint, text):
    """Related and unrelated scores by measure, word by word, from the whole map of a text."""
    (prepared,) = pass_texts(checkpoint, [text])
    attention, attentions = whole_map(checkpoint, prepared).astype(float), checkpoint.attentions["self"]
    words, heads = text.words[0], [head - 1 for head in text.heads[0]]
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    spans = prepared.queries.spans
    pieces = [
        [t for t, (a, b) in enumerate(spans) if prepared.queries.segments[t] == 0 and max(a, s) < min(b, s + len(w))]
        for w, s in zip(words, starts)
    ]

    def n_live(layer, query):
        start = 0 if attentions.reach(layer).back is None else max(0, query - attentions.reach(layer).back)
        return range(start, query + 1 if attentions.causal else prepared.n_tokens)

    def mean_of(layer, one, other):
        """Mean attention, and one over what uniform attention gives; None where nothing can be seen."""
        cells = [(i, j) for i in pieces[one] for j in pieces[other] if j in n_live(layer, i)]
        if not cells:
            return None
        by_chance = np.mean([1 / len(n_live(layer, i)) for i, _ in cells])
        return np.mean([attention[layer, :, i, j] for i, j in cells], axis=0), 1 / by_chance

    shape = (len(SYNTACTIC_MEASURES), *attention.shape[:2])
    related, unrelated = np.full(shape, np.nan), np.full(shape, np.nan)
    for place, measure in enumerate(SYNTACTIC_MEASURES):
        role, direction = measure.split(" ")
        for layer in range(attention.shape[0]):
            of_related, of_unrelated = [], []
            for word, (head, name) in enumerate(zip(heads, text.relations[0])):
                name = "dobj" if name == "obj" else name
                if head < 0 or name not in RELATIONS or role not in ("syntactic", f"syntactic:{name}"):
                    continue
                edges = [(word, head)]
                for one in range(len(words)):
                    other = one + head - word
                    if not 0 <= other < len(words) or "," in (words[one], words[other]):
                        continue
                    if heads[one] != other and heads[other] != one:
                        edges.append((one, other))
                turned = [edge if direction == DIRECTIONS[0] else edge[::-1] for edge in edges]
                own, *beside = (mean_of(layer, *edge) for edge in turned)
                others = [of[0] for of in beside if of is not None]
                if own is not None and others:
                    of_related.append(own[0] * own[1])
                    of_unrelated.append(np.mean(others, axis=0) * own[1])
            if of_related:
                related[place, layer] = np.mean(of_related, axis=0)
                unrelated[place, layer] = np.mean(of_unrelated, axis=0)
    return related, unrelated


@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral"])
def test_scores_of_pairs_are_those_of_a_count_word_by_word(family, loaded):
    checkpoint = loaded(family)
    for text, found in zip(TEXTS, results(checkpoint, MATCHED_PAIRS, TEXTS), strict=True):
        related, unrelated = brute_force(checkpoint, text)
        np.testing.assert_allclose(found.related, related, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.unrelated, unrelated, rtol=1e-4, atol=1e-6)
    assert np.isfinite(results(checkpoint, MATCHED_PAIRS, TEXTS[:1])[0].related).any()
    assert np.isnan(results(checkpoint, MATCHED_PAIRS, TEXTS[2:])[0].related).all()


WRITTEN = {
    "an offset": '[to]\noffset = [-2, -1]\nwords = ["a", "the", "cat", "saw"]',
    "copies": '[to]\nrelative = "earlier copy"',
    "relations": '[to]\nrelative = "head"\nrelations = ["nsubj", "obj"]',
}


def token_by_token(checkpoint, prepared, role):
    """Scores of a written role's pairs and of others at their distances in tokens, from the whole map of a text."""
    attention, attentions = whole_map(checkpoint, prepared).astype(float), checkpoint.attentions["self"]
    n_tokens, segments = prepared.n_tokens, prepared.queries.segments
    pairs = [(pair.dependent.tolist(), pair.head.tolist()) for pair in role.sieve.of(prepared)]
    related = [] if prepared.notes is None else prepared.notes.pairs
    every = [*pairs, *((pair.dependent.tolist(), pair.head.tolist()) for pair in related)]
    joined = {(i, j) for queries, keys in every for i in queries for j in keys}
    found = np.full((2, *attention.shape[:2]), np.nan)
    for layer in range(attention.shape[0]):
        back = attentions.reach(layer).back

        def n_live(query, back=back):
            return range(
                max(0, query - (n_tokens if back is None else back)), query + 1 if attentions.causal else n_tokens
            )

        def others(distance, layer=layer):
            places = [(i, i + distance) for i in range(n_tokens) if 0 <= i + distance < n_tokens]
            return [
                attention[layer, :, i, j]
                for i, j in places
                if j in n_live(i) and segments[i] >= 0 <= segments[j] and not {(i, j), (j, i)} & joined
            ]

        sums = []
        for queries, keys in pairs:
            cells = [(i, j) for i in queries for j in keys if j in n_live(i) and len(others(j - i))]
            if cells:
                parts = np.array([1 / len(n_live(i)) for i, _ in cells])
                both = [
                    (attention[layer, :, i, j] * len(n_live(i)), np.mean(others(j - i), axis=0) * len(n_live(i)))
                    for i, j in cells
                ]
                sums.append(np.tensordot(parts / parts.sum(), np.array(both), axes=1))
        if sums:
            found[:, layer] = np.mean(sums, axis=0)
    return found


@pytest.mark.parametrize("family", ["bert", "gpt2", "mistral"])
@pytest.mark.parametrize("rule", WRITTEN)
def test_pairs_of_a_written_role_are_compared_with_others_at_their_distance_in_tokens(family, rule, loaded):
    checkpoint = loaded(family)
    role = role_named(read_role(f'role = 1\nname = "mine"\nletter = "G"\ncolour = "#AA3377"\n{WRITTEN[rule]}').id)
    texts = [
        TEXTS[0],
        gold(("the", "cat", "saw", "the", "cat"), (2, 3, 0, 5, 3), ("det", "nsubj", "root", "det", "obj")),
    ]
    ((roles, question),) = matched_questions(("local", role.name)).items()
    wanted = replace(role.wanted, relations=("any",) if role.wanted.relations else ())
    parsed = with_relations(pass_texts(checkpoint, texts), texts, wanted, noted=role.is_noted)
    for found, prepared in zip(results(checkpoint, question, texts), parsed, strict=True):
        related, unrelated = token_by_token(checkpoint, prepared, role)
        np.testing.assert_allclose(found.related[0], related, rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found.unrelated[0], unrelated, rtol=1e-4, atol=1e-6)
    found = results(checkpoint, question, texts)
    if rule == "an offset":  # where every pair of the first text has another one at its distance
        (measured,) = results(checkpoint, scores_question(roles), texts[:1])
        np.testing.assert_allclose(found[0].related[0], measured.measures[0], rtol=1e-4, atol=1e-6)
    tests = matched_tests(found, "both", Criterion(), roles)
    both = joined_tests([tests, tests])
    assert (both.roles, both.p.shape[0]) == (2 * (role.name,), 2)


def made(n_texts=9, seed=3):
    random = np.random.default_rng(seed)
    shape = (len(SYNTACTIC_MEASURES), 2, 4)
    texts = [
        TextMatches(
            related=random.gamma(4, 1, shape) * np.linspace(1, 3, shape[2]), unrelated=random.gamma(4, 1, shape)
        )
        for _ in range(n_texts)
    ]
    texts[0].related[:2], texts[0].unrelated[:2] = np.nan, np.nan
    return texts


def test_the_paired_test_is_that_of_scipy_with_the_correction_of_the_roles():
    texts = made()
    tests = matched_tests(texts, "dependent-to-head", Criterion(alpha=0.1))
    related, unrelated = (np.stack([getattr(text, name) for text in texts]) for name in ("related", "unrelated"))
    for row in range(len(SYNTACTIC)):
        by_scipy = stats.ttest_rel(related[:, row], unrelated[:, row], alternative="greater", nan_policy="omit")
        np.testing.assert_allclose(tests.p[row], by_scipy.pvalue, rtol=1e-6)
        adjusted = stats.false_discovery_control(by_scipy.pvalue.ravel()).reshape(2, 4)
        np.testing.assert_allclose(tests.p_adjusted[row], adjusted, rtol=1e-6)
        means = (np.nanmean(values[:, row], axis=0) for values in (related, unrelated))
        times = np.divide(*means)
        np.testing.assert_array_equal(tests.beats[row], (adjusted < 0.1) & (times >= LEAST_TIMES))
    assert (tests.p_adjusted[~tests.beats] < 0.1).any(), "some are significant, and not high enough"
    assert tests.beats.any()
    assert tests.texts[0, 0, 0] == 8


def test_both_directions_are_the_mean_of_the_two():
    texts = made()
    both = matched_tests(texts, "both", Criterion())
    one_way, other_way = (matched_tests(texts, direction, Criterion()) for direction in DIRECTIONS)
    np.testing.assert_allclose(both.related[2], (one_way.related[2] + other_way.related[2]) / 2)


def test_a_head_that_holds_a_role_without_beating_its_control_is_positional_and_no_other():
    random = np.random.default_rng(4)
    scores = 5 + random.normal(0, 0.5, (12, len(ROLES), 1, 3))
    scores[:, :, :, 2] = 1 + random.normal(0, 0.1, (12, len(ROLES), 1))
    tests = role_tests(scores, ROLES, Criterion(), 1.0)
    shape = (12, len(SYNTACTIC_MEASURES), 1, 3)
    unrelated = random.normal(2, 0.3, shape)
    unrelated[..., 1] = random.normal(5.2, 0.5, shape[:-1])
    related = np.full(shape, 5.0) + random.normal(0, 0.3, shape)
    matched = matched_tests(
        [TextMatches(related=a, unrelated=b) for a, b in zip(related, unrelated)], "both", Criterion()
    )
    marked = matched.positional(tests)
    for role in ROLES:
        expected = [False, role in SYNTACTIC, False]
        assert marked[ROLES.index(role), 0].tolist() == expected, role


def test_one_text_marks_nothing():
    matched = matched_tests(made(1), "both", Criterion(method="mean"))
    scores = np.full((1, len(ROLES), 2, 4), 9.0)
    assert not matched.positional(role_tests(scores, ROLES, Criterion(method="mean"), 1.0)).any()


def test_cross_attention_has_no_pairs_of_words(loaded):
    with pytest.raises(AnalysisError, match="Relations join words of one text"):
        list(answer(loaded("bert"), MATCHED_PAIRS, [], {}, PassSettings("cross")))


def test_distance_explains_half_of_the_syntactic_heads_of_the_bundled_checkpoint_but_not_its_objects(bundled):
    texts = read_sample("both")
    scored = role_scores(results(bundled, SCORES, texts), ScoreSettings())
    tests = role_tests(scored.scores, ROLES, Criterion(), scored.uniform)
    matched = matched_tests(results(bundled, MATCHED_PAIRS, texts), "dependent-to-head", Criterion())
    place, marked = ROLES.index("syntactic"), matched.positional(tests)
    assert np.argwhere(marked[place]).tolist() == [[1, 4], [1, 8], [2, 8], [4, 9]]
    np.testing.assert_array_equal(marked[place], tests.holds[place])
    related, unrelated = matched.related[0], matched.unrelated[0]
    assert (related[1, 8], unrelated[1, 8]) == pytest.approx((7.77, 7.60), abs=0.02)
    times = related / unrelated
    assert (times[1, 4], times[2, 8], times[4, 9]) == pytest.approx((1.62, 1.86, 1.64), abs=0.02)
    assert (matched.p_adjusted[0] < 0.05).sum() == pytest.approx(46, abs=2)
    objects = ROLES.index("syntactic:dobj")
    assert np.argwhere(tests.holds[objects] & ~marked[objects]).tolist() == [[2, 0], [3, 8]]
    assert int((matched.texts[0] < len(texts)).sum()) == matched.texts[0].size  # two texts have no pair to compare
