from dataclasses import replace
from itertools import pairwise

import naive
import numpy as np
import pytest
from naive import Layout
from passing import SELF, Recorder, measures_of, of_source, pass_texts, whole_map
from small_checkpoints import CAUSAL, ENCODERS, FAMILIES

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings, Window
from attention_sieve.core.passes.batches import model_inputs, plan_batches
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.scores import ScoreObserver, score_batch
from attention_sieve.core.roles.sieves import batch_sieves
from attention_sieve.core.texts.relations import TokenPair
from attention_sieve.core.texts.text import Text

TEXTS = (
    Text(("The black cat sat unbelievably quickly.",)),
    Text(("Who sat on the mat?", "The two dogs do not eat it.")),
    Text(("Eat!",)),
    Text(("She chased birds where it is red", "black coffee")),
    Text(("a b", "c")),
)
RELATIONS = ("nsubj", "dobj", "amod", "advmod")
SEGMENT_MARKS = {  # tokens before, between and after the segments, and whether they are delimiters
    "bert": (1, 1, 1, True),
    "distilbert": (1, 1, 1, True),
    "electra": (1, 1, 1, True),
    "albert": (1, 1, 1, True),
    "roberta": (1, 2, 1, True),
    "gpt2": (0, 0, 0, False),
    "llama": (1, 0, 0, False),
}


def close(found, expected):
    """Within 1e-5 relative to |x| + 1, and NaN in the same places."""
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    return bool(np.nanmax(np.abs(found - expected) / (np.abs(expected) + 1)) <= 1e-5)


def tokenized(checkpoint, texts=TEXTS):
    return [text.source for text in pass_texts(checkpoint, texts)]


def layout_of(family, text):
    before, between, after, marks = SEGMENT_MARKS[family]
    n_first, n_second = int((text.segments == 0).sum()), int((text.segments == 1).sum())
    made = Layout.of(
        n_first, n_second, before=before, between=between, after=after, marks=marks, causal=family in CAUSAL
    )
    assert made.n_tokens == len(text.ids)
    return made


def some_pairs(layouts, seed=0):
    """Pairs of words of one to three pieces, in both orders of the text; the third text has none."""
    random = np.random.default_rng(seed)
    of_texts = []
    for number, layout in enumerate(layouts):
        inner = sorted({*layout.first, *layout.second})
        cuts = sorted({0, len(inner), *random.integers(0, len(inner) + 1, 4).tolist()})
        words = [tuple(inner[a:b][:3]) for a, b in pairwise(cuts)]
        pairs = [
            (RELATIONS[(number + k) % 4], words[k], words[m])
            for k in range(len(words))
            for m in range(len(words))
            if k != m and random.random() < 0.6
        ]
        of_texts.append([] if number == 2 else pairs)
    return of_texts


def expected_scores(model_class, folder, texts, layouts, pairs, takes_type_ids):
    of_texts = []
    for text, layout, its_pairs in zip(texts, layouts, pairs):
        attention = naive.eager_attention(model_class, folder, text.ids, text.type_ids if takes_type_ids else None)
        found = naive.measures(attention, layout, its_pairs)
        of_texts.append(np.stack([found[name] for name in USUAL.measures]))
    return np.stack(of_texts)


def prepared(texts, pairs):
    made = [[TokenPair(name, np.array(one), np.array(other)) for name, one, other in of_text] for of_text in pairs]
    return [of_source(text, its_pairs) for text, its_pairs in zip(texts, made, strict=True)]


def scores(checkpoint, texts, pairs, settings=SELF):
    """Scores in the order of the texts, in one batch or several."""
    return measures_of(checkpoint, prepared(texts, pairs), settings)


@pytest.fixture(scope="module")
def expected(folders):
    """expected(family) -> checkpoint's texts, pairs and the scores written out from the definition."""
    made = {}

    def of_family(family, checkpoint):
        if family not in made:
            texts = tokenized(checkpoint)
            layouts = [layout_of(family, text) for text in texts]
            pairs = some_pairs(layouts)
            model_class = type(checkpoint.model)
            made[family] = (
                texts,
                pairs,
                expected_scores(model_class, folders(family), texts, layouts, pairs, checkpoint.takes_type_ids),
            )
        return made[family]

    return of_family


@pytest.mark.parametrize(
    ("family", "dtype"), [*((family, "float64") for family in FAMILIES), ("bert", "float32"), ("llama", "float32")]
)
def test_scores_equal_their_definition_on_the_eager_path(family, dtype, loaded, expected):
    checkpoint = loaded(family, dtype)
    texts, pairs, by_definition = expected(family, checkpoint)
    found = scores(checkpoint, texts, pairs)
    assert found.dtype == dtype
    assert found.shape == (5, 17, 2, 4 if family == "llama" else 3)
    assert close(found, by_definition)
    assert by_definition[:, USUAL.measures.index("local")].std() > 0.1, "nearly uniform attention would show nothing"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_measure_that_can_be_is_compared(family, loaded, expected):
    _, _, by_definition = expected(family, loaded(family))
    compared = {name for name, there in zip(USUAL.measures, (~np.isnan(by_definition)).any(axis=(0, 2, 3))) if there}
    never = {"sink"} if family in ENCODERS else {name for name in USUAL.measures if name.startswith("delimiter")}
    assert set(USUAL.measures) - compared == never


@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_scores_the_same_alone_padded_and_in_any_order(family, loaded, expected):
    checkpoint = loaded(family)
    texts, pairs, _ = expected(family, checkpoint)
    together = scores(checkpoint, texts, pairs)
    alone = np.concatenate([scores(checkpoint, [text], [its_pairs]) for text, its_pairs in zip(texts, pairs)])
    order = [3, 0, 4, 2, 1]
    permuted = scores(checkpoint, [texts[i] for i in order], [pairs[i] for i in order])
    assert close(together, alone)
    assert close(permuted, together[order])


@pytest.mark.parametrize("entries", [1, 333])
@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
def test_small_tiles_give_the_same_scores(family, entries, loaded, expected, small_tiles):
    checkpoint = loaded(family, "float64")
    texts, pairs, by_definition = expected(family, checkpoint)
    small_tiles(entries)
    tiles = seen_tiles(checkpoint, texts)
    assert len(tiles) > 4
    assert any(queries.stop - queries.start < len(texts[0].ids) for _, queries in tiles)
    assert close(scores(checkpoint, texts, pairs), by_definition)


def test_tiles_of_whole_texts_give_the_same_scores(loaded, expected, small_tiles):
    checkpoint = loaded("bert", "float64")
    texts, pairs, by_definition = expected("bert", checkpoint)
    width = max(len(text.ids) for text in texts)
    small_tiles(2 * 3 * width * width)
    tiles = seen_tiles(checkpoint, texts)
    assert {texts.stop - texts.start for texts, _ in tiles} == {1, 2}
    assert {(queries.start, queries.stop) for _, queries in tiles} == {(0, width)}
    assert close(scores(checkpoint, texts, pairs), by_definition)


def seen_tiles(checkpoint, texts):
    recorder = Recorder()
    observe(checkpoint.model, model_inputs(checkpoint, prepared(texts, [()] * len(texts))), Pass(observers=[recorder]))
    return [(tile.texts, tile.queries) for tile in recorder.tiles]


@pytest.mark.parametrize("family", ["modernbert", "mistral", "phi3", "gemma2", "gemma3", "gpt_oss"])
def test_uniform_attention_in_a_window_scores_one(family, loaded):
    """Keys outside a layer's window are no keys that its queries could see."""
    import copy

    import torch

    checkpoint = loaded(family, "float32" if family == "gpt_oss" else "float64")
    checkpoint = replace(checkpoint, model=copy.deepcopy(checkpoint.model))
    assert any(reach.back is not None for reach in checkpoint.attentions["self"].reaches)
    with torch.no_grad():
        for name, parameter in checkpoint.model.named_parameters():
            if any(part in name for part in ("Wqkv", "q_proj", "qkv_proj")):
                parameter.zero_()
    (text,) = pass_texts(checkpoint, [Text(("the black cat sat where a red dog ran and two birds do not eat it",))])
    near, far = np.array([3]), np.array([14])
    pairs = (TokenPair("nsubj", near, near - 1), TokenPair("amod", far, near), TokenPair("dobj", far, far - 2))
    (found,) = measures_of(checkpoint, [replace(text, pairs=pairs)])
    ratios = np.delete(found, USUAL.measures.index("block"), axis=0)
    assert np.isfinite(ratios[USUAL.measures.index("local")]).all()
    np.testing.assert_allclose(ratios[~np.isnan(ratios)], 1, atol=1e-6 if family == "gpt_oss" else 1e-12)
    seen = np.isfinite(found[USUAL.measures.index("syntactic:amod dependent-to-head")]).all(axis=1)
    windowed = [reach.back is not None for reach in checkpoint.attentions["self"].reaches]
    assert seen.tolist() == [not is_windowed for is_windowed in windowed]


def test_a_text_without_separator_has_no_separator_score(loaded):
    checkpoint = loaded("bert")
    (text,) = tokenized(checkpoint, TEXTS[:1])
    found = scores(checkpoint, [replace(text, is_sep=np.zeros_like(text.is_sep))], [[]])[0]
    assert np.isnan(found[USUAL.measures.index("delimiter:sep")]).all()
    np.testing.assert_allclose(found[USUAL.measures.index("delimiter")], found[USUAL.measures.index("delimiter:cls")])


def test_the_observer_needs_only_the_layers_up_to_the_last(loaded, expected):
    """The pass of score_batch stops after the last attention; a whole pass gives the same."""
    checkpoint = loaded("bert")
    texts, pairs, _ = expected("bert", checkpoint)
    texts = prepared(texts, pairs)
    observer = ScoreObserver([batch_sieves(texts, causal=False)] * 2, 3, "cpu", checkpoint.statistics_dtype)
    assert observe(checkpoint.model, model_inputs(checkpoint, texts), Pass(observers=[observer])) is not None
    # A product without the values' columns is summed in another order.
    np.testing.assert_allclose(observer.scores()[0], measures_of(checkpoint, texts), rtol=1e-5, atol=1e-6)


def test_a_head_that_is_off_is_gone_from_the_pass(loaded, expected):
    """Independently: the weights of its slice of the output projection set to zero."""
    import copy

    import torch

    checkpoint = loaded("bert", "float64")
    texts, pairs, _ = expected("bert", checkpoint)
    model = copy.deepcopy(checkpoint.model)
    with torch.no_grad():
        model.encoder.layer[0].attention.output.dense.weight[:, 4:8] = 0
    found = scores(checkpoint, texts, pairs, PassSettings(off=((0, 1),)))
    assert close(found, scores(replace(checkpoint, model=model), texts, pairs))
    assert np.nanmax(np.abs(found - scores(checkpoint, texts, pairs))) > 1e-3


def test_maps_are_kept_of_the_texts_that_were_asked_for(loaded, monkeypatch):
    checkpoint = loaded("gpt2", "float64")
    texts = pass_texts(checkpoint, TEXTS[:4])
    monkeypatch.setattr("attention_sieve.core.roles.scores.OVERVIEW_BLOCKS", 5)
    width = texts[3].n_tokens
    whole, part = Window((0, texts[1].n_tokens), (0, texts[1].n_tokens)), Window((4, 9), (1, 3))
    found = score_batch(checkpoint, texts, SELF, {1: whole, 3: part}).maps
    assert list(found) == [1, 3]
    np.testing.assert_allclose(found[1].attention, whole_map(checkpoint, texts[1]), atol=1e-12)
    assert (found[1].window, found[1].block, found[1].overview) == (whole, 0, None)
    np.testing.assert_allclose(found[3].attention, whole_map(checkpoint, texts[3])[:, :, 4:9, 1:3], atol=1e-12)
    assert (found[3].window, found[3].block) == (part, -(-width // 5))
    assert found[3].overview.shape == (2, 3, -(-width // found[3].block), -(-width // found[3].block))


def test_batches_hold_every_text_once_and_keep_to_the_budget():
    lengths = [7, 30, 5, 5, 12, 11, 50, 6]
    batches = plan_batches(lengths, budget=24)
    assert sorted(position for batch in batches for position in batch.positions) == list(range(8))
    for batch in batches:
        assert batch.width == max(lengths[position] for position in batch.positions)
        assert len(batch.positions) == 1 or batch.width * len(batch.positions) <= 24
    assert [batch.positions for batch in batches] == [(2, 3, 7), (0, 5), (4,), (1,), (6,)]


def test_texts_of_one_length_need_no_mask(loaded):
    checkpoint = loaded("bert")
    one, other = pass_texts(checkpoint, TEXTS[:2])
    assert set(model_inputs(checkpoint, [one, one])) == {"input_ids", "token_type_ids"}
    assert model_inputs(checkpoint, [one, other])["attention_mask"].sum(1).tolist() == [one.n_tokens, other.n_tokens]
