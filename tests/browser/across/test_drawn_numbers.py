"""What the arcs make of the weights that Python sends: the same scripts, in the same browser, without a page."""

from pathlib import Path

import numpy as np
import pytest
from steps import slow_down

from attention_sieve.dashboard.components import arcs
from attention_sieve.dashboard.components.arcs import attention_arcs
from attention_sieve.dashboard.components.arcs.look import ArcSettings, Overlay
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Side, strongest_links, top_share

FOLDER = Path(arcs.__file__).parent
PURE = ("../page.js", "numbers.js", "table.js", "links.js", "tokens.js", "targets.js")
TABLE = """
  const data = dataOf(sent);
  const { queries } = data;
  const keys = data.keys ?? queries;
  const inside = decodeInside(data.inside, data.heads.length * queries.tokens.length);
  const attention = decodeAttention(data.attention, keys.tokens.length, inside);
  const sieve = data.sieve && decodeSieve(data.sieve.cells, queries.tokens.length * keys.tokens.length);
  const grammar = data.grammar && decodeSieve(data.grammar, queries.tokens.length * keys.tokens.length);
  const source = { data, queries, keys, inside, attention, sieve, grammar };
  const table = buildTable(source, choices);
  const heads = data.heads.map((_, head) => head);
  const { links } = keptLinks(table, heads, limitOf({ strongest: null, share, ...choices }), choices.pair ?? null);
  if (linksAlone) return { links };
  return {
    shape: [table.nHeads, table.nQueries, table.nKeys],
    labels: [table.rows.from, table.rows.to].map((rows) => rows.map((row) => row.label)),
    attention: [...table.attention],
    leaving: [...table.leaving],
    onSpecials: table.onSpecials && [...table.onSpecials],
    sieve: table.sieve && [...table.sieve],
    targets: [...targetsOfLinks(table, source)].map((target) => data.targets[target].name),
    links,
  };
"""


@pytest.fixture
def table(browser, monkeypatch):
    """table(arguments, choices, share): what is drawn of these maps and overlay.

    With `links_alone` without the numbers, a million of which take seconds on their way.
    """
    page = browser.new_page()
    slow_down(page)
    scripts = "\n".join((FOLDER / script).read_text("utf-8") for script in PURE)

    def build(arguments, choices=None, share=0.5, links_alone=False):
        sent = []
        monkeypatch.setattr(arcs, "_mount", lambda **given: sent.append(given["data"]))
        given = {"keys": arguments["queries"], **arguments}
        overlay = given.pop("overlay", None)
        attention_arcs(AttentionMaps(label="", **given), Selection("arcs", ArcSettings()), overlay=overlay)
        asked = [sent[0], choices or {}, share, links_alone]
        drawn = page.evaluate(f"([sent, choices, share, linksAlone]) => {{{scripts}{TABLE}}}", asked)
        if links_alone:
            return drawn
        n_heads, n_queries, n_keys = drawn["shape"]
        drawn["attention"] = np.array(drawn["attention"]).reshape(n_heads, n_queries, n_keys)
        drawn["leaving"] = np.array(drawn["leaving"]).reshape(n_heads, n_queries)
        return drawn

    yield build
    page.close()


def side(tokens, words=None, special=(), segments=None, **place):
    words = np.array(range(len(tokens)) if words is None else words)
    is_special = np.isin(np.arange(len(tokens)), special)
    segments = np.zeros(len(tokens), int) if segments is None else np.array(segments)
    return Side(tokens=tokens, special=is_special, segments=segments, words=words, **place)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_the_page_draws_the_links_that_the_file_draws(table, share):
    weights = np.random.default_rng(1).dirichlet(np.full(12, 0.4), size=(2, 5))
    whole = side([str(number) for number in range(12)])
    for keys, attention in ((whole, weights), (whole.part(3, 10), weights[..., 3:10])):
        found = table(
            {"queries": whole.part(0, 5), "keys": keys, "attention": attention, "heads": [(0, 1), (0, 2)]}, {}, share
        )
        read = found["attention"]
        assert read.sum(axis=-1) == pytest.approx(attention.sum(axis=-1), abs=1e-4)
        assert found["leaving"] == pytest.approx(1 - attention.sum(axis=-1), abs=1e-4)
        expected = top_share(read, share, 1.0 if keys.is_part else None)
        assert sorted(found["links"]) == np.flatnonzero(expected).tolist()


def test_the_page_draws_the_strongest_links_that_the_file_draws(table):
    weights = np.random.default_rng(2).dirichlet(np.full(7, 0.4), size=(2, 7))
    weights[0, 1] = [0, 0.25, 0, 0.25, 0.25, 0.25, 0]  # of equal links the earlier ones
    weights[1, 2] = [0, 0, 0, 0, 1, 0, 0]
    whole = side([str(number) for number in range(7)])
    for count in (1, 2, 3):
        found = table({"queries": whole, "attention": weights, "heads": [(0, 1), (0, 2)]}, {"strongest": count})
        expected = strongest_links(found["attention"], count)
        assert expected[0, 1].nonzero()[0].tolist() == [1, 3, 4][:count]
        assert expected[1, 2].nonzero()[0].tolist() == [4]
        assert sorted(found["links"]) == np.flatnonzero(expected).tolist()


CROSS = {
    "queries": side(["<s>", "the", "cat"], words=[-1, 0, 1], special=[0], segments=[-1, 0, 0], name="target"),
    "keys": side(["le", "ch", "at", "</s>"], words=[0, 1, 1, -1], special=[3], segments=[0, 1, 1, -1], name="source"),
    "attention": np.array([[[0.25, 0.25, 0.25, 0.25], [0.04, 0.16, 0.16, 0.64], [0.0, 0.0, 0.0, 1.0]]]),
    "heads": [(0, 1)],
    "overlay": Overlay(chosen=("local", np.array([[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], bool))),
}


def test_words_of_two_texts_are_joined_on_each_side(table):
    found = table(CROSS, {"byWord": True})
    assert found["labels"] == [["<s>", "the", "cat"], ["le", "chat", "</s>"]]
    assert found["attention"][0] == pytest.approx(
        np.array([[0.25, 0.5, 0.25], [0.04, 0.32, 0.64], [0, 0, 1]]), abs=0.01
    )
    assert found["sieve"] == [0, 0, 0, 0, 1, 0, 0, 0, 1]


def test_special_tokens_of_two_texts_are_left_out_on_each_side(table):
    found = table(CROSS, {"hideSpecials": True})
    assert found["labels"] == [["the", "cat"], ["le", "ch", "at"]]
    assert found["attention"][0] == pytest.approx(np.array([[1 / 9, 4 / 9, 4 / 9], [0, 0, 0]]), abs=0.02)
    assert found["onSpecials"] == pytest.approx([0.64, 1], abs=0.01)
    assert found["sieve"] == [0, 0, 1, 0, 0, 0]


def test_a_segment_filter_asks_each_side_for_its_own_segment(table):
    found = table(CROSS, {"pair": [0, 1]}, share=1)
    assert sorted(found["links"]) == [4 + 1, 4 + 2]


def test_hidden_special_tokens_leave_the_rest_of_the_row_and_of_the_window_in_proportion(table):
    whole = side(["[CLS]", "a", "b", "c"], words=[-1, 0, 1, 2], special=[0], segments=[-1, 0, 0, 0])
    window = {"queries": whole.part(1, 2), "keys": whole.part(0, 2), "heads": [(0, 1)]}
    found = table(window | {"attention": np.array([[[0.5, 0.3]]])}, {"hideSpecials": True})
    assert found["attention"].ravel() == pytest.approx([0.6], abs=0.01)
    assert found["leaving"].ravel() == pytest.approx([0.4], abs=0.01)
    assert found["onSpecials"] == pytest.approx([0.5], abs=0.01)


def test_many_links_through_a_tall_drawing_are_cut_to_what_can_be_drawn(table):
    n_tokens = 256
    even = np.full((12, n_tokens, n_tokens), 1 / n_tokens)
    queries = side(["a"] * n_tokens)
    heads = [(0, head) for head in range(12)]
    found = table({"queries": queries, "attention": even, "heads": heads}, {}, 1, links_alone=True)
    assert 12 * n_tokens <= len(found["links"]) <= 3907


def targets_of(table, attention, *, grammar=(), segments=(-1, 0, 0, 0, 0, -1), choices=None):
    """The name of each link's target in: [CLS] old cats sleep . [SEP]."""
    tokens = ["[CLS]", "old", "cats", "sleep", ".", "[SEP]"]
    kinds = ("first", "other", "other", "other", "punctuation", "separator")
    queries = side(tokens, words=[-1, 0, 1, 2, 3, -1], special=[0, 5], segments=segments, kinds=kinds)
    joined = np.zeros((6, 6), bool)
    for query, key in grammar:
        joined[query, key] = True
    given = {"queries": queries, "attention": attention[None], "heads": [(0, 1)], "overlay": Overlay(grammar=joined)}
    return np.array(table(given, choices)["targets"]).reshape(6, 6)


def rows(*keys):
    """Attention of which each query gives nearly all to one key."""
    attention = np.full((6, 6), 0.02)
    attention[np.arange(6), keys] = 0.9
    return attention


def test_a_link_has_the_target_to_which_its_head_gives_most_attention(table):
    grammar = [(3, 2), (3, 1), (4, 3)]
    back = targets_of(table, rows(0, 0, 1, 2, 3, 4), grammar=grammar)
    assert (back[3, 2], back[3, 1], back[2, 1]) == ("previous", "grammar", "previous")
    to_words = targets_of(table, rows(0, 2, 0, 1, 3, 0), grammar=grammar)
    assert (to_words[4, 3], to_words[3, 1], to_words[2, 1]) == ("grammar", "grammar", "previous")
    resting = targets_of(table, rows(0, 0, 0, 0, 0, 0))
    assert set(resting[:, 0]) == {"first"}
    assert set(resting[:4, 5]) == {"separator"}
    assert (resting[2, 4], resting[1, 3], resting[1, 1], resting[1, 2]) == ("punctuation", "other", "other", "next")


def test_what_has_no_other_target_is_of_the_own_segment_where_there_are_two(table):
    found = targets_of(table, rows(0, 0, 0, 0, 0, 0), segments=(-1, 0, 0, 1, 1, -1))
    assert (found[1, 1], found[3, 1], found[3, 3]) == ("segment", "other", "segment")
