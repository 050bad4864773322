"""The card of a head: the same by call and command, its numbers those of the program, its words nothing but data."""

import json
import re
import struct
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

import attention_sieve as sieve
from attention_sieve.__main__ import main
from attention_sieve.core.descriptions.accuracies import RelationFact, ShareFact
from attention_sieve.core.descriptions.naming import NO_NAME
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.card import wording
from attention_sieve.dashboard.card.content import OnText, links_of
from attention_sieve.dashboard.figures.card import HEIGHT, WIDTH

SVG = "{http://www.w3.org/2000/svg}"
TEXT = "The old dog chased a cat."
TEXTS = ["She closed the shop.", "A cat sat on the old mat.", "He sold two books."]
HOSTILE = '<script>alert(1)</script> & "x" שלום עולם \x07 ' + "Donaudampfschifffahrt" * 8


def words_on(svg):
    """All that is written on a card, which has to be well-formed XML without anything but drawing in it."""
    root = ElementTree.fromstring(svg)
    tags = {element.tag.removeprefix(SVG) for element in root.iter()}
    assert tags <= {"svg", "title", "desc", "g", "rect", "line", "text", "tspan", "path"}
    assert (root.get("width"), root.get("height")) == (str(WIDTH), str(HEIGHT))
    return ["".join(element.itertext()) for element in root.iter(f"{SVG}text")]


def opacities(svg):
    """How dark each field of the pattern is."""
    root = ElementTree.fromstring(svg)
    (pattern,) = (group for group in root.iter(f"{SVG}g") if group.get("class") == "pattern")
    return [float(field.get("fill-opacity")) for field in pattern if field.get("fill-opacity")]


def numbers_of_png(path):
    with Image.open(path) as image:
        pixels = np.array(image.convert("RGB"))
    assert pixels.shape == (HEIGHT, WIDTH, 3)
    return pixels


@pytest.fixture(scope="module")
def card(bundled):
    return sieve.card("bundled", TEXT, (0, 2), texts=TEXTS, device="cpu")


def test_the_card_holds_what_the_program_computes(card):
    svg, attention = card.svg(), sieve.attention("bundled", TEXT)
    written = words_on(svg)
    assert card.name == "Looks at the previous token"
    assert card.name in written
    assert "all-MiniLM-L6-v2  ·  layer 0, head 2" in written
    weights = attention.weights[0, 2]
    assert len(opacities(svg)) == weights.size
    assert np.allclose(opacities(svg), 0.03 + 0.97 * np.minimum(weights.ravel(), 1) ** 0.6, atol=0.01)
    tokens = attention.query_tokens
    shares = sorted((weights[place, place - 1] for place in range(2, len(tokens) - 1)), reverse=True)
    assert [word for word in written if word.endswith("%") and len(word) < 5] == [
        f"{share:.0%}" for share in shares[:3]
    ]
    surface = sieve.surface("bundled", TEXTS, device="cpu").table
    of_head = surface[(surface.layer == 0) & (surface["head"] == 2) & (surface.statistic == "previous")]
    assert card.content.sentence.startswith(f"{of_head['mean'].iloc[0]:.0%} of its attention")
    roles = sieve.roles("bundled", TEXTS, device="cpu").table
    local = roles[(roles.role == "local") & (roles.layer == 0) & (roles["head"] == 2)]
    tests = card.content.scores.tests
    assert tests.mean[tests.roles.index("local"), 0, 2] == pytest.approx(local["mean"].iloc[0], rel=1e-5)
    assert {"tau 3", "uniform 1"} <= set(written)


def test_the_picture_says_what_it_was_computed_from(card, tmp_path):
    described = ElementTree.fromstring(card.svg()).find(f"{SVG}desc").text
    for name in ("checkpoint", "fingerprint", "texts sha256", "tau", "text", "command"):
        assert f"{name}: {card.facts[name]}" in described
    assert card.facts["command"].startswith("attention-sieve card --checkpoint bundled --head 0-2 --text")
    saved = card.save(tmp_path / "card.png")
    pixels = numbers_of_png(saved)
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 50
    assert 0.02 < (pixels < 128).any(axis=2).mean() < 0.5, "neither blank nor black"
    content = saved.read_bytes()
    start = content.index(b"iTXtDescription")
    length = struct.unpack(">I", content[start - 4 : start])[0]
    assert described.encode() in content[start : start + 4 + length]
    with pytest.raises(AnalysisError, match=r"\.svg, \.png"):
        card.save(tmp_path / "card.pdf")
    assert card._repr_svg_() == card.svg()
    assert repr(card) == "Card of Looks at the previous token: L0 H2 of all-MiniLM-L6-v2"


def test_the_command_draws_what_the_call_draws(guessing, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TEXTS), "utf-8")
    asked = ["card", "--checkpoint", str(guessing), "--device", "cpu", "--head", "1-0", "--text", TEXT, "--tau", "1.2"]
    for suffix in ("svg", "png"):
        assert main([*asked, "--texts", str(texts), "--output", str(tmp_path / f"a.{suffix}")]) == 0
    called = sieve.card(str(guessing), TEXT, (1, 0), texts=TEXTS, device="cpu", tau=1.2)
    drawn = (tmp_path / "a.svg").read_text("utf-8")
    assert words_on(drawn) == words_on(called.svg())
    assert opacities(drawn) == pytest.approx(opacities(called.svg()), abs=1e-3)
    assert "tau 1.2" in words_on(drawn)
    numbers_of_png(tmp_path / "a.png")


def test_without_texts_a_name_is_chosen_on_the_samples_and_judged_on_the_varied_ones(guessing):
    found = sieve.card(str(guessing), TEXT, (0, 1), device="cpu", parser=False, too_long="truncate")
    assert re.match(r"Chosen on 128 sample texts, judged on \d+ varied sample texts;", found.content.notes[0])
    assert "--texts" not in found.facts["command"]
    assert "--no-parser" in found.facts["command"]


@pytest.mark.parametrize("text", [HOSTILE, "[UNK] ☃ [SEP]", (TEXT, HOSTILE)], ids=["hostile", "unknown", "a pair"])
def test_whatever_a_text_holds_is_written_as_it_is(text, guessing, tmp_path):
    found = sieve.card(str(guessing), text, (1, 1), texts=TEXTS, device="cpu", parser=False, too_long="truncate")
    words_on(found.svg())
    numbers_of_png(found.save(tmp_path / "card.png"))
    assert found.facts["text"].startswith((text if isinstance(text, str) else text[0])[:8])


def test_a_pattern_of_many_tokens_is_drawn_in_blocks(bundled):
    found = sieve.card("bundled", "a " * 90, (1, 1), texts=TEXTS, device="cpu", parser=False)
    fields = opacities(found.svg())
    assert len(fields) == 64**2
    assert min(fields) >= 0.03


def test_a_decoder_has_a_card(writing, tmp_path):
    found = sieve.card(str(writing), "the cat ran and the dog sat", (0, 1), texts=TEXTS, device="cpu", parser=False)
    assert any("previous" in word or "sink" in word for word in words_on(found.svg()))
    rows = found.content.pattern
    assert np.allclose(np.triu(rows, 1), 0)


def test_cross_attention_is_drawn_over_pairs(folders):
    pair = ("the cat ran", "a dog sat")
    found = sieve.card(
        str(folders("t5")), pair, (0, 1), texts=[pair, ("the dog", "it ran")], attention="cross", device="cpu"
    )
    assert found.content.pattern.shape[0] != 0
    words_on(found.svg())
    with pytest.raises(AnalysisError, match="no target for the decoder"):
        sieve.card(str(folders("t5")), TEXT, (0, 1), texts=[pair], attention="cross", device="cpu")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"head": (9, 0)}, "has no head L9 H0"),
        ({"head": (-1, 0)}, "Give layer and head"),
        ({"head": "L1"}, "head is 'L1'"),
        ({"text": ""}, "."),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_a_reason(change, said, guessing):
    asked = {"text": TEXT, "head": (0, 1)} | change
    with pytest.raises(AnalysisError, match=said):
        sieve.card(str(guessing), asked["text"], asked["head"], texts=TEXTS, device="cpu", parser=False)


def test_the_command_refuses_two_heads_two_texts_and_other_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    usual = {"--checkpoint": "bundled", "--head": "1-0", "--text": TEXT, "--output": "a.svg"}
    for change, said in (
        ({"--output": "a.pdf"}, ".svg, .png"),
        ({"--head": "1-0,1-1"}, "names 2 heads"),
        ({"--head": "19-0"}, "has no head L19 H0"),
        ({"--text": "One.\nTwo."}, "--text has 2 lines"),
    ):
        given = [part for option in (usual | change).items() for part in option]
        try:
            code = main(["card", *given])
        except SystemExit as end:
            code = end.code
        assert code == 2
        assert said in capsys.readouterr().err


RELATED = {"direction": DIRECTIONS[1], "accuracy": 0.8, "low": 0.7, "high": 0.9, "baseline": 0.4, "offset": -2}
RELATED |= {"where_wrong": 0.7, "surplus": 0.1, "n_cases": 200, "p_value": 0.001, "control": None}


def test_the_links_are_the_strongest_that_the_name_speaks_of(bundled):
    from attention_sieve.core.answering import prepare_all
    from attention_sieve.core.attention.settings import PassSettings
    from attention_sieve.core.roles.measures import ScoreSettings
    from attention_sieve.core.roles.question import pass_text

    checkpoint, text = sieve.load("bundled", device="cpu"), Text(("The dog chased a cat and she closed the shop.",))
    prepared, _ = prepare_all(checkpoint, [text], PassSettings("self"), "error")
    passed = pass_text(checkpoint, text, prepared[0], PassSettings("self"), ScoreSettings())
    on_text = OnText(passed=passed, head=(1, 7))
    weights, tokens = on_text.attention, passed.text_attention.text.queries.tokens
    links, about = links_of(RelationFact(relation="dobj", **RELATED), on_text)
    assert {(link.query, link.key) for link in links} == {("chased", "cat"), ("closed", "shop")}
    assert about == wording.such_links(2)
    for link in links:
        assert link.share == pytest.approx(weights[tokens.index(link.query), tokens.index(link.key)], abs=1e-6)
    links, about = links_of(RelationFact(relation="neg", **RELATED), on_text)
    assert (len(links), about) == (3, wording.NO_SUCH_LINK)
    (links, about), again = links_of(None, on_text), weights.copy()
    words = [place for place, token in enumerate(tokens) if token.isalnum()]
    again = again[np.ix_(words, words)] * (1 - np.eye(len(words)))
    assert about == wording.STRONGEST
    assert links[0].share == pytest.approx(again.max(), abs=1e-6)
    rests, _ = links_of(ShareFact(target="cls", share=0.6, low=0.5, high=0.7, even=0.1), on_text)
    assert {link.key for link in rests} == {"[CLS]"}
    assert rests[0].share == pytest.approx(max(weights[1:-1, 0]), abs=1e-6)


def test_a_head_without_a_habit_is_not_given_one(bundled):
    found = sieve.card("bundled", TEXT, (0, 3), texts=TEXTS, device="cpu", parser=False)
    assert found.name == NO_NAME
    assert found.content.sentence.startswith("Nothing that it mostly does passes all tests.")
    assert found.content.control == ""
    assert json.dumps(dict(found.facts))
