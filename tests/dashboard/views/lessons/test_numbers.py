"""What the lessons say, computed again by transformers alone: heads, shares, counts, odds and angles."""

import re
from itertools import product

import naive
import numpy as np
import pytest
import torch
from reading import sent, told
from transformers import AutoModel
from tuned import save_tuned

from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.roles.controls import SEEDS
from attention_sieve.core.statistics.evidence import STAKES
from attention_sieve.dashboard.views.lessons.sentences import FAR, LONG, SHORT, SIMILAR
from attention_sieve.dashboard.views.text.stories import SENTENCE

OWN = "The tired girl reads a long book in the garden."
PARSED = {
    "The patient nurse gently washed it.": "patient-nurse nurse-washed gently-washed it-washed",
    "A stray dog chased them.": "stray-dog dog-chased them-chased",
    "My cousin finally sold his van.": "cousin-sold finally-sold van-sold",
    "The young farmer sold his old horse.": "young-farmer farmer-sold old-horse horse-sold",
    "A tall waiter dropped the hot soup.": "tall-waiter waiter-dropped hot-soup soup-dropped",
    "The noisy dogs chased a frightened cat.": "noisy-dogs dogs-chased frightened-cat cat-chased",
    "The small child ate warm bread.": "small-child child-ate warm-bread bread-ate",
    "A young girl found old books.": "young-girl girl-found old-books books-found",
    "The happy girl read the new book.": "happy-girl girl-read new-book book-read",
}
"""Texts, with each adjective, subject, adverb and object and the word that it belongs to; the object comes last."""
TAU, ALPHA = 1.1, 0.1
"""So lenient that some heads hold each role over so few texts."""


def said(app, lesson, step, page="inspect", **link):
    return told(app(page, lesson=str(lesson), step=str(step), **link)).replace("*", "")


def numbers(pattern, text):
    """The heads, words and percentages of a sentence."""
    found = re.search(pattern, text)
    assert found, text
    return [int(part) if part.isdecimal() else head(part) or part for part in found.groups()]


def head(name):
    match = re.fullmatch(r"L(\d+) H(\d+)", name)
    return match and (int(match[1]), int(match[2]))


def percent(share):
    """A share as it is said: rounded, of attention that is kept in half precision."""
    return pytest.approx(100 * float(share), abs=0.53)


def strongest(shares):
    return np.unravel_index(shares.argmax(), shares.shape)


def to_word_before(attention):
    places = np.arange(2, attention.shape[-1] - 1)
    return attention[..., places, places - 1].mean(-1)


def to_signs(attention):
    return attention[..., 1:-1, :][..., [0, -1]].sum(-1).mean(-1)


def test_lesson_1_says_where_its_two_heads_look(app, eager):
    tokens, attention = eager(SENTENCE)
    back, word = to_word_before(attention), tokens.index("closed")
    assert numbers(
        r"head named (L\d+ H\d+): (\d+)% of its looking goes .* alike, that would be (\d+)%\.", said(app, 1, 1)
    ) == [strongest(back), percent(back.max()), percent(1 / len(tokens))]
    asked = strongest(attention[:, :, word, tokens.index("shop")])
    row = attention[*asked, word]
    answer = numbers(r"From closed, (L\d+ H\d+) looks at (\w+) most: (\d+)% of all", said(app, 1, 3))
    assert answer == [asked, tokens[row.argmax()], percent(row.max())]
    assert numbers(r"There are (\d+) heads .* work in (\d+) groups", said(app, 1, 4)) == [attention[..., 0, 0].size, 6]


def test_lesson_2_names_the_heads_that_look_back_and_rest_most_and_counts_those_that_rest(app, eager):
    tokens, attention = eager(SENTENCE)
    back, resting = to_word_before(attention), to_signs(attention)
    assert numbers(
        r"(L\d+ H\d+) does it most: (\d+)% of .* spread evenly would give (\d+)%\.", said(app, 2, 2)
    ) == [strongest(back), percent(back.max()), percent(1 / len(tokens))]  # fmt: skip
    assert numbers(
        r"(\d+) of (\d+) heads\. Most of all (L\d+ H\d+), with (\d+)%; .* would give (\d+)%\.", said(app, 2, 4)
    ) == [(resting > 0.5).sum(), resting.size, strongest(resting), percent(resting.max()), percent(2 / len(tokens))]
    found = re.search(
        r"this one has (\d+) tokens, and (\d+) of 72 heads rest\. In a sentence of (\d+) tokens, such as She left "
        r"early, it is (\d+); in one of (\d+), it is (\d+)\.",
        said(app, 2, 5, text=OWN),
    )
    counted = [
        (len(tokens), int((to_signs(attention) > 0.5).sum())) for tokens, attention in map(eager, (OWN, SHORT, LONG))
    ]
    assert [int(number) for number in found.groups()] == [number for of_text in counted for number in of_text]


def test_lesson_3_says_what_its_head_gives_to_the_object(app, eager):
    assert "L1 H7 looked from closed to shop." in said(app, 3, 1)
    tokens, attention = eager(FAR.sentence)
    row = attention[1, 7, tokens.index("opened")]
    assert numbers(
        r"At (\w+): (\d+)% of its attention from opened goes there, .* would give (\d+)%\.", said(app, 3, 2)
    ) == [tokens[row.argmax()], percent(row.max()), percent(1 / len(tokens))]
    tokens, attention = eager(OWN)
    assert numbers(
        r"It found: (\w+) → (\w+)\. .* (L\d+ H\d+) gives (\d+)% of .* would give (\d+)%\.", said(app, 3, 3, text=OWN)
    ) == ["reads", "book", (1, 7), percent(attention[1, 7, tokens.index("reads"), tokens.index("book")]),
          percent(1 / len(tokens))]  # fmt: skip


def log_evidence(eager, *model):
    """Scores [text role layer head] of grammar and of rest, and the logarithm of the evidence for each; from their
    definitions."""
    scores = []
    for text, pairs in PARSED.items():
        tokens, attention = eager(text, *model)
        places = [("any", *((tokens.index(word),) for word in pair.split("-"))) for pair in pairs.split()]
        measured = naive.measures(attention, naive.Layout.of(len(tokens) - 2, 0), places)
        scores.append([measured["syntactic dependent-to-head"], measured["delimiter"]])
    scores = np.array(scores)
    bets = [np.log1p(stake * (scores / TAU - 1)).sum(0) for stake in STAKES]
    return scores, np.log(np.exp(bets).mean(0))


def n_holding(log_evidence):
    """The largest number of heads whose evidence is each at least that of all heads, divided by theirs and by ALPHA."""
    ordered = np.sort(np.exp(log_evidence), axis=None)[::-1]
    return max((n for n, least in enumerate(ordered, 1) if least >= ordered.size / n / ALPHA), default=0)


def test_lesson_4_counts_heads_with_roles_objects_found_random_models_and_odds(app, eager):
    link = {"tau": str(TAU), "alpha": str(ALPHA), "corpus_text": "\n".join(PARSED)}
    first, answer, last = (app("roles", lesson="4", step=step, **link) for step in ("1", "3", "5"))
    scores, evidence = log_evidence(eager)
    n_found, distances = 0, []
    for text, pairs in PARSED.items():
        its_object, verb = pairs.split()[-1].split("-")
        tokens, attention = eager(text)
        row = attention[1, 7, tokens.index(verb)]
        others = [place for place, token in enumerate(tokens) if token.isalpha() and token != verb]
        n_found += tokens[max(others, key=lambda place: row[place])] == its_object
        distances.append(tokens.index(its_object) - tokens.index(verb))
    counted = [n_holding(of_role) for of_role in evidence]
    assert min(counted) > 0
    assert numbers(
        r"over (\d+) texts\. .* score is 1\.00 for .* clearly above 1\.1\. (\d+) of (\d+) heads .* (L\d+ H\d+), in the "
        r"black frame, .* there are (\d+) pairs .*: in (\d+), L1 H7 .* is right in (\d+)\.\).*: (\d+) have it",
        told(first).replace("*", ""),
    ) == [len(PARSED), counted[0], evidence[0].size, (1, 7), len(PARSED), n_found,
          max(map(distances.count, distances)), counted[1]]  # fmt: skip
    score = re.search(r"It has no S: its score is (\d\.\d\d)\.", told(first))[1]
    assert float(score) == pytest.approx(scores[:, 0, 1, 7].mean(), abs=0.006)
    assert sent(first, "Roles of")["chosen"] == [[1, 7]]
    random = []
    for seed in SEEDS:
        model = load_checkpoint(randomly_initialised(find_checkpoint(BUNDLED), seed), device="cpu").model
        model.set_attn_implementation("eager")
        random.append(n_holding(log_evidence(eager, model)[1][0]))
    drawn = (
        f"each of {len(SEEDS)} models: {', '.join(map(str, random))}. With the weights that were learnt: {counted[0]}"
    )
    assert f"{drawn}, over the same {len(PARSED)} texts." in told(answer)
    best = strongest(evidence[0])
    name, odds = f"L{best[0]} H{best[1]}", int(np.exp(evidence[0][best]))
    assert f"best odds: {odds:,}\u00a0:\u00a01, for {name}." in told(last)


@pytest.fixture(scope="module")
def vectors(bundled_alone):
    """vectors(heads) -> [sentence channel]: those of the lessons' sentence and of each other one, without some heads,
    whose outputs are set to 0 before the output projection."""
    model, tokenizer = bundled_alone
    size = model.config.hidden_size // model.config.num_attention_heads
    encoded = tokenizer([SENTENCE, *SIMILAR], return_tensors="pt", padding=True)
    mask = encoded["attention_mask"].double()

    def without(off):
        def gate(inputs, layer):
            outputs = inputs[0].clone()
            for of, head in off:
                if of == layer:
                    outputs[..., head * size : (head + 1) * size] = 0
            return (outputs,)

        projections = [layer.attention.output.dense for layer in model.encoder.layer]
        hooks = [
            projection.register_forward_pre_hook(lambda _, inputs, layer=layer: gate(inputs, layer))
            for layer, projection in enumerate(projections)
        ]
        with torch.no_grad():
            states = model(**encoded).last_hidden_state.double()
        for hook in hooks:
            hook.remove()
        return (torch.einsum("st,stc->sc", mask, states) / mask.sum(1, keepdim=True)).numpy()

    return without


@pytest.fixture(scope="module")
def vectors_without_each(vectors):
    """The same by head, without it alone."""
    return {head: vectors({head}) for head in product(range(6), range(12))}


def cosines(vectors):
    """Of the first with each other."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return unit[1:] @ unit[0]


def turn(before, after):
    """The angle between the first vectors, in degrees."""
    cosine = before[0] @ after[0] / np.linalg.norm(before[0]) / np.linalg.norm(after[0])
    return np.degrees(np.arccos(cosine))


def lead(vectors):
    """How far the first other sentence is ahead of the next."""
    first, *others = cosines(vectors)
    return first - max(others)


def test_lesson_5_flips_the_ranking_without_the_heads_that_it_names(app, vectors, vectors_without_each):
    at = app(lesson="5", step="1")
    assert f"1. {SIMILAR[0]}" in told(at)
    at.number_input(key="guessed number").set_value(3)
    next(button for button in at.button if button.key == "lesson guess it").click().run()
    answer = told(at)
    assert f"1. {SIMILAR[1]}" in answer
    assert "You said 3: right." in answer
    n_off, names, degrees = re.search(r"(\d+) of 72: without (.*?), \*.* turns by (\d+)°", answer, re.DOTALL).groups()
    off = set(map(head, names.split(", ")))
    assert len(off) == int(n_off)
    before, after = vectors(()), vectors(off)
    assert cosines(before).argmax() == 0
    assert lead(before) > 0.15
    assert cosines(after).argmax() == 1
    shown = [float(value) for value in re.findall(r"\*\*(\d\.\d\d|-\d\.\d\d)\*\*", answer)]
    np.testing.assert_allclose(shown, np.sort(cosines(after))[::-1], atol=0.006)
    assert int(degrees) == pytest.approx(turn(before, after), abs=0.51)
    for one in off:
        assert cosines(vectors(off - {one})).argmax() == 0, "fewer of them do not do"
    leads = {head: lead(of_head) for head, of_head in vectors_without_each.items()}
    assert set(sorted(leads, key=leads.get)[: len(off)]) == off, "those without which alone it is least ahead"
    assert min(leads.values()) > 0, "what these do together none does alone"


def test_lesson_5_says_by_how_much_one_head_turns_the_vector_of_the_text(app, vectors, vectors_without_each):
    turns = {head: turn(vectors(()), of_head) for head, of_head in vectors_without_each.items()}
    n_heads, middle, name, most = re.search(
        r"half of the (\d+) turn .* by (\d+)° or less .* and even (L\d+ H\d+), .* by (\d+)°", said(app, 5, 3)
    ).groups()
    assert (int(n_heads), head(name)) == (len(turns), max(turns, key=turns.get))
    assert [int(middle), int(most)] == pytest.approx([np.median(list(turns.values())), max(turns.values())], abs=0.51)


def test_lesson_6_names_the_layer_and_the_head_that_differ_most(app, eager, tmp_path):
    """The share of a row that goes elsewhere is what the one gives and the other does not."""
    tuned = save_tuned(tmp_path / "tuned")
    model = AutoModel.from_pretrained(tuned, attn_implementation="eager").eval()
    before, after = eager(SENTENCE)[1], eager(SENTENCE, model)[1]
    moved = np.maximum(after - before, 0).sum(-1).mean(-1)
    layer, n_layers = int(moved.mean(1).argmax()), len(moved)
    most = (layer, int(moved[layer].argmax()))
    pair = {"page": "compare", "with": str(tuned), "text": SENTENCE}
    first = said(app, 6, 1, **pair)
    assert f"then {tuned}." in first
    assert f"L{layer} H" not in first, "what the next step asks"
    assert numbers(r"from zero to (\d+), .* lines of (L\d+ H\d+)", said(app, 6, 2, **pair)) == [n_layers - 1, (0, 0)]
    assert numbers(
        r"You said 5: not yet\. In layer 5, (\d+)% of the attention goes elsewhere\.\s+Layer (\d+)\. There, .* (\d+)% "
        r".* in the first layer it is (\d+)%\. \(The last is layer (\d+)\.\) In layer (\d+), .* is (L\d+ H\d+), by "
        r"(\d+)%",
        said(app, 6, 3, **pair, said="5"),
    ) == [percent(moved[5].mean()), layer, percent(moved[layer].mean()), percent(moved[0].mean()), n_layers - 1, layer,
          most, percent(moved[most])]  # fmt: skip
    assert numbers(r"the head that differs most is (L\d+ H\d+)\.", said(app, 6, 5, **pair)) == [most]
