"""Antecedent selection: by hand, against loops over eager maps, and the baselines of the gold data."""

import io
import json
import re
from contextlib import redirect_stderr
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import transformers
from made_attention import to_no_antecedent
from naive import eager_attention
from passing import SELF
from scipy.stats import t as student

from attention_sieve.__main__ import main
from attention_sieve.core.coreference.accuracy import (
    GROUPS,
    NO_CHOICE,
    MentionChoices,
    cases_of,
    coreference_scores,
)
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS, CoreferenceFinding, coreference_table
from attention_sieve.core.coreference.mentions import Mention, MentionText
from attention_sieve.core.coreference.observer import mention_choices
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

STORY = "Unbelievable birds ran ; the black dog chased the birds , and it quickly sat where they ate apples"


def marked(words, *mentions, name="a text"):
    """A text from its words, and mentions as head word, type and entity, of one word each."""
    words = words.split()
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])
    return MentionText(
        name=name,
        text=Text((" ".join(words),), (tuple(words),)),
        spans=tuple((int(start), int(start) + len(word)) for start, word in zip(starts, words)),
        mentions=tuple(Mention(head, head + 1, head, kind, entity) for head, kind, entity in mentions),
        sentence_ends=(len(words),),
    )


def chosen(text, *rows, words=None, is_read=None):
    """Choices of a checkpoint of 1 layer and as many heads as there are rows."""
    of_mentions = np.array(rows)[None]
    of_words = of_mentions if words is None else np.array(words)[None]
    read = np.ones(len(text.mentions), bool) if is_read is None else np.array(is_read)
    return MentionChoices(mentions=of_mentions, words=of_words, is_read=read, **to_no_antecedent(of_mentions))


BIRDS = marked(
    STORY,
    (1, "nominal", "birds"),
    (6, "nominal", "dog"),
    (9, "nominal", "birds"),
    (12, "pronoun", "dog"),
    (16, "pronoun", "birds"),
    (18, "nominal", "apples"),
)
DOG = marked("unbelievable dog ran ; it sat", (0, "nominal", "a"), (1, "nominal", "dog"), (4, "pronoun", "dog"))
ANN = marked("Ann saw Bo and Ann left", (0, "proper", "a"), (2, "proper", "b"), (4, "proper", "a"), name="Ann")

FLOCK = marked("old birds ran ; they ate and birds sat", (1, "nominal", "x"), (4, "pronoun", "x"), (7, "nominal", "x"))
FLOCK = replace(FLOCK, mentions=(replace(FLOCK.mentions[0], start=0), *FLOCK.mentions[1:]))


def test_cases_and_baselines_by_hand():
    assert BIRDS.antecedents == ((), (), (0,), (1,), (0, 2), ())
    assert BIRDS.n_referring_back == 3
    cases = cases_of([BIRDS, ANN], [np.ones(6, bool), np.ones(3, bool)])
    assert list(zip(cases.text.tolist(), cases.mention.tolist())) == [(0, 2), (0, 3), (0, 4), (1, 2)]
    assert cases.groups.tolist() == [
        [True, True, True, True],
        [False, True, True, False],
        [False, False, False, True],
        [True, False, False, False],
    ]
    # The mention before: dog, birds, it, Bo. The same word: birds for birds, Ann for Ann, else the mention before.
    assert cases.baselines.tolist() == [[False, False, False, False], [True, False, False, True]]
    np.testing.assert_allclose(cases.chance, [1 / 2, 1 / 3, 2 / 4, 1 / 2])


def test_scores_by_hand():
    # The first head takes the nearest mention, the second the first one, the third is always right.
    birds = chosen(BIRDS, (-1, 1, 6, 9, 12, 16), (-1, 1, 1, 1, 1, 1), (-1, 1, 1, 6, 9, 1))
    scores = coreference_scores([BIRDS, ANN], [birds, chosen(ANN, (-1, 0, 2), (-1, 0, 0), (-1, 0, 0))])
    np.testing.assert_array_equal(scores.judgement.n_cases, [4, 2, 1, 1])
    np.testing.assert_allclose(scores.judgement.accuracy[:, 0], [[0, 3 / 4, 1], [0, 1 / 2, 1], [0, 1, 1], [0, 1, 1]])
    np.testing.assert_allclose(scores.judgement.baselines, [[0, 0, 0, 0], [1 / 2, 0, 1, 1]])
    np.testing.assert_allclose(scores.chance, [(1 / 2 + 1 / 3 + 2 / 4 + 1 / 2) / 4, (1 / 3 + 1 / 2) / 2, 1 / 2, 1 / 2])
    assert scores.best == (0, 2)
    # Beyond the same head word, the third head is right twice in the first document only: 2/4 +- 1/4.
    np.testing.assert_allclose(scores.judgement.p_values[1, 0, 0], [1, 3 * student.sf(2, 1), 3 * student.sf(2, 1)])
    assert scores.judgement.held_out.heads == ((0, 2), (0, 1))
    # Chosen on the first text: the third head, right on the second. Chosen there: the second, 2 of 3 on the first.
    np.testing.assert_allclose(scores.judgement.held_out.accuracy, [3 / 4, 1 / 2, 1, 1])
    np.testing.assert_allclose(scores.judgement.held_out.p_values[0, 0], student.sf(6, 1))
    np.testing.assert_array_equal(scores.n_documents, [2, 1, 1, 1])


def test_parts_of_a_document_stand_in_one_half():
    """Two heads: one is right in the first document, the other in the second; by windows each half had some of both."""
    first, second = (0, 0, 0), (0, 0, 2)
    texts = [replace(ANN, name=f"{name}, from word {start}", cut_from=name) for name in "xy" for start in (1, 7, 13)]
    assert [text.document for text in texts] == [*"xxxyyy"]
    assert (ANN.document, cases_of([BIRDS, ANN], [np.ones(6, bool), np.ones(3, bool)]).document.tolist()) == (
        "Ann",
        [0, 0, 0, 1],
    )
    scores = coreference_scores(texts, [*[chosen(ANN, first, second)] * 3, *[chosen(ANN, second, first)] * 3])
    assert scores.judgement.accuracy[0].tolist() == [[1 / 2, 1 / 2]]
    assert scores.judgement.held_out.heads == ((0, 0), (0, 1))
    assert scores.judgement.held_out.accuracy[0] == 0
    assert coreference_scores(texts[:3], [chosen(ANN, first, second)] * 3).judgement.held_out is None, (
        "one document has no halves"
    )


def test_other_words_count_only_where_they_are_candidates():
    choices = chosen(ANN, (-1, 0, 0), words=[(1, 0, 5)])
    assert coreference_scores([ANN], [choices]).judgement.accuracy[0, 0, 0] == 1
    assert coreference_scores([ANN], [choices], "words").judgement.accuracy[0, 0, 0] == 0


def test_mentions_beyond_a_cut_are_counted_and_no_cases():
    scores = coreference_scores([BIRDS], [chosen(BIRDS, [NO_CHOICE] * 6, is_read=[True] * 3 + [False] * 3)])
    assert (scores.judgement.n_cases[0], scores.n_unread) == (1, 2)
    assert scores.judgement.accuracy[0, 0, 0] == 0
    assert scores.judgement.held_out is None
    with pytest.raises(AnalysisError, match=r"^All 3 mentions that refer back have a head word without a token"):
        coreference_scores([BIRDS], [chosen(BIRDS, [NO_CHOICE] * 6, is_read=[False] * 6)])


def test_the_table_has_a_row_for_every_group_and_head():
    choices = (chosen(BIRDS, [1] * 6, [6] * 6), chosen(ANN, [0] * 3, [2] * 3))
    table = coreference_table(CoreferenceFinding((BIRDS, ANN), choices, COREFERENCE_ANALYSIS.settings))
    assert len(table) == len(GROUPS) * 2
    row = table[(table["group"] == "proper") & (table["head"] == 1)].iloc[0]
    assert (row["cases"], row["accuracy"], row["same head word"], row["layer"]) == (1, 0.0, 1.0, 0)


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_baselines_are_those_of_the_gold_data(gum, split):
    texts = gum(f"antecedent_windows_{split}")
    cases = cases_of(texts, [np.ones(len(text.mentions), bool) for text in texts])
    expected = {"dev": (25.9, 64.4), "test": (23.2, 60.3)}[split]  # the data's README
    assert tuple(np.round(100 * cases.baselines.mean(axis=1), 1)) == expected


CLASSES = {"bert": "BertModel", "roberta": "RobertaModel", "gpt2": "GPT2Model"}


def words_of_tokens(checkpoint, text):
    """Ids, and for each token the word of its first character, that before it for a blank; None for special tokens."""
    encoding = checkpoint.tokenizer(text.text.segments[0], return_offsets_mapping=True)
    segment, words = text.text.segments[0], []
    for (start, end), side in zip(encoding["offset_mapping"], encoding.sequence_ids(0)):
        piece = segment[start:end]
        start += len(piece) - len(piece.lstrip()) if piece.strip() else len(piece) - 1  # a blank, which some trim away
        own = [place for place, (first, _) in enumerate(text.spans) if first <= start]
        words.append(own[-1] if side is not None else None)
    return encoding["input_ids"], words


def naive_choices(attention, words, text, from_word="mean"):
    """Loops over tokens, words and mentions."""
    n_layers, n_heads = attention.shape[:2]
    tokens = [[token for token, own in enumerate(words) if own == word] for word in range(len(text.spans))]
    found = {name: np.full((n_layers, n_heads, len(text.mentions)), -1) for name in ("mentions", "words")}
    for layer, head in np.ndindex(n_layers, n_heads):
        for number, mention in enumerate(text.mentions):
            rows = tokens[mention.head] if from_word == "mean" else tokens[mention.head][:1]
            weight = [np.mean([sum(attention[layer, head, i, j] for j in of_word) for i in rows]) for of_word in tokens]
            earlier = [before.head for before in text.mentions[:number]]
            others = [word for word in range(len(tokens)) if word != mention.head]
            for name, candidates in (("mentions", earlier), ("words", others)):
                best = max(candidates, key=lambda word: weight[word], default=None)
                if best is not None and weight[best] > 0:
                    found[name][layer, head, number] = best
    return found


def naive_attention(attention, words, text, from_word):
    """Attention to antecedents, and of later words of no mention of the entity to them, word by word."""
    tokens = [[at for at, own in enumerate(words) if own == place] for place in range(len(text.spans))]
    n_layers, n_heads = attention.shape[:2]
    expected = np.full((2, n_layers, n_heads, len(text.mentions)), np.nan)
    entity = [
        {w for m in text.mentions if m.entity == each.entity for w in range(m.start, m.end)} for each in text.mentions
    ]

    def between(query, key):
        rows = tokens[query] if from_word == "mean" else tokens[query][:1]
        return attention[:, :, rows][..., tokens[key]].sum(axis=-1).mean(axis=-1)

    for number, antecedents in enumerate(text.antecedents):
        sums = []
        for mention in (text.mentions[before] for before in antecedents):
            later = [word for word in range(mention.head + 1, len(tokens)) if word not in entity[number]]
            if later:
                others = np.mean([between(word, mention.head) for word in later], axis=0)
                sums.append((between(text.mentions[number].head, mention.head), others))
        if sums:
            expected[:, :, :, number] = np.sum(sums, axis=0)
    return expected


@pytest.mark.parametrize(
    ("family", "from_word"), [("bert", "mean"), ("bert", "first"), ("roberta", "mean"), ("gpt2", "first")]
)
def test_choices_and_attention_to_antecedents_are_those_of_eager_maps(family, from_word, loaded, folders):
    """Beside each other in a batch, with a mention of several words and a word that repeats."""
    checkpoint, texts = loaded(family), [ANN, DOG, FLOCK]
    prepared = [prepare(checkpoint, text.text, SELF) for text in texts]
    found = dict(one for batch in mention_choices(checkpoint, texts, prepared, SELF, from_word) for one in batch)
    for place, text in enumerate(texts):
        ids, words = words_of_tokens(checkpoint, text)
        assert len(words) > len(text.spans)
        attention = eager_attention(getattr(transformers, CLASSES[family]), folders(family), ids)
        expected = naive_choices(attention, words, text, from_word)
        np.testing.assert_array_equal(found[place].mentions, expected["mentions"])
        np.testing.assert_array_equal(found[place].words, expected["words"])
        assert found[place].is_read.all()
        actual = np.stack([found[place].to_antecedents, found[place].from_others])
        np.testing.assert_allclose(actual, naive_attention(attention, words, text, from_word), rtol=2e-4, atol=1e-6)
        has_antecedent = [bool(before) for before in text.antecedents]
        # The last word of a text has no later one to compare it with.
        assert (np.isfinite(actual).all(axis=(0, 1, 2)) <= has_antecedent).all()


def test_mentions_beyond_a_cut_choose_nothing(loaded):
    checkpoint = loaded("bert")
    long = marked(" ".join(["the dog sat"] * 30), (1, "nominal", "dog"), (4, "nominal", "dog"), (85, "nominal", "dog"))
    prepared = [prepare(checkpoint, long.text, SELF, truncate=True)]
    ((_, found),) = next(mention_choices(checkpoint, [long], prepared, SELF))
    assert found.is_read.tolist() == [True, True, False]
    assert (found.mentions[:, :, 1] == 1).all()
    assert (found.mentions[:, :, [0, 2]] == NO_CHOICE).all()
    assert (found.words[:, :, 2] == NO_CHOICE).all()


@pytest.fixture
def clusters_file(tmp_path):
    path = tmp_path / "gold.json"
    objects = [
        {"text": "Ann saw the dog and she fed it .", "clusters": [[[0, 3], [20, 23]], [[8, 15], [28, 30]]]},
        {"words": ["Bo", "ate", "apples", ";", "he", "sat"], "clusters": [[[0, 1], [4, 5]], [[2, 3]]]},
    ]
    path.write_text(json.dumps(objects), "utf-8")
    return path


def command(folder, texts, output, *more):
    return main(["coreference", "--checkpoint", str(folder), "--texts", str(texts), "--output", str(output), *more])


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_of_parsing_cutting_and_the_pass(folders, clusters_file, tmp_path):
    with redirect_stderr(Terminal()) as terminal:
        assert command(folders("bert"), clusters_file, tmp_path / "a.csv") == 0
    parsing, cutting, passing = re.split("parsing: 100%.*|cutting: 100%.*", terminal.getvalue())
    assert "parsing:   0%" in parsing
    assert "0/1" in parsing, "only the first text has a mention of several words"
    assert "cutting:   0%" in cutting
    assert "0/2" in cutting
    assert "2/2" in passing


def test_the_command_says_what_it_cannot_do(folders, clusters_file, tmp_path, capsys):
    assert command(folders("t5"), clusters_file, tmp_path / "a.csv", "--attention", "cross") == 2
    assert "cross-attention need two. Choose encoder attention." in capsys.readouterr().err
    assert command(folders("bert"), clusters_file, tmp_path / "a.csv", "--window", "9") == 2
    assert "A window of 9 tokens is too short. Choose at least 16." in capsys.readouterr().err


def test_an_encoder_s_mentions_are_scored_and_the_best_head_is_said(folders, clusters_file, tmp_path, capsys):
    assert command(folders("t5"), clusters_file, tmp_path / "a.csv", "--attention", "encoder") == 0
    assert capsys.readouterr().err.splitlines()[-1].startswith("L")
    table = pd.read_csv(tmp_path / "a.csv")
    assert set(table["attention"]) == {"encoder"}
    assert table["cases"].max() == 3
