"""The page Grammar without a browser: that it shows what core computes, and says what it cannot."""

import base64
import json
import re
from functools import cache
from xml.etree import ElementTree

import numpy as np
import pytest
from reading import data_of, sent
from streamlit.delta_generator import DeltaGenerator

import attention_sieve.core.relations.observer
from attention_sieve.cache.trees import PARSED_PER_REPORT
from attention_sieve.core.answering import find
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL
from attention_sieve.core.relations.settings import DIRECTIONS, RelationSettings
from attention_sieve.core.texts.relations import ROOT, Dependencies, dependencies
from attention_sieve.core.texts.text import Text, read_file
from attention_sieve.core.texts.tokens import Words
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES
from attention_sieve.dashboard.figures.relations.parse_arcs import CHECK
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.grammar.relations.table import is_case

TEXTS = (
    "The old cat sat on the red mat.",
    "She quickly drank hot coffee.",
    "A small bird sang and two dogs ran.",
    "He sold the red apples to a black dog.",
)
FEW = "1"
CONLLU = """\
1\tShe\t_\t_\t_\t_\t2\tnsubj\t_\t_
2\teats\t_\t_\t_\t_\t0\troot\t_\t_
3\tred\t_\t_\t_\t_\t4\tamod\t_\t_
4\tapples\t_\t_\t_\t_\t2\tobj\t_\t_

1\tThe\t_\t_\t_\t_\t2\tdet\t_\t_
2\tdog\t_\t_\t_\t_\t3\tnsubj\t_\t_
3\tran\t_\t_\t_\t_\t0\troot\t_\t_
"""


loaded = cache(load_checkpoint)


@pytest.fixture(scope="module")
def checkpoint(small):
    """A small checkpoint whose heads look at something: with usual random weights they look evenly."""
    return small("bert", initializer_range=0.9)


@pytest.fixture
def parsing(app, checkpoint):
    def opened(**link):
        usual = {"checkpoint": checkpoint, "corpus_text": "\n".join(TEXTS), "least cases": FEW}
        return app("grammar", **(usual | link))

    return opened


def found_by(files, texts=None, kind="self", **how):
    """What core finds in some texts, without the page and the cache."""
    texts = [Text((text,)) for text in TEXTS] if texts is None else texts
    settings = RelationSettings(least_cases=1, **how)
    return find(RELATION_ANALYSIS, loaded(files), texts, settings, PassSettings(kind))


def computed(files, texts=None, kind="self", **how):
    return found_by(files, texts, kind, **how).accuracies


def table(at):
    return next(each.value for each in at.dataframe if "held_out" in each.value.columns)


def assert_shows(rows, accuracies):
    assert rows["relation"].tolist() == [one.relation for one in accuracies]
    assert rows["cases"].tolist() == [one.n_cases for one in accuracies]
    numbers = rows[["held_out", "held_out_low", "held_out_high", "accuracy", "baseline", "offset", "p"]].to_numpy(float)
    expected = [
        [one.best_accuracy, one.best_low, one.best_high, of_best(one), one.baseline.share, one.baseline.offset]
        for one in accuracies
    ]
    in_percent = [100, 100, 100, 100, 100, 1]
    np.testing.assert_allclose(numbers[:, :6], np.array(expected) * in_percent, rtol=1e-12)
    np.testing.assert_allclose(numbers[:, 6], [one.p_value for one in accuracies], rtol=1e-12)
    assert rows["name"].tolist() == [f"L{one.best[1]} H{one.best[2]}" for one in accuracies]
    assert rows["direction"].tolist() == [DIRECTION_NAMES[one.best[0]] for one in accuracies]


def of_best(accuracy):
    direction, layer, head = accuracy.best
    return accuracy.accuracy[DIRECTIONS.index(direction), layer, head]


def drawn(at):
    """The arcs, as the page was sent them."""
    views = [data_of(view.proto.json) for view in at.get("bidi_component")]
    return ElementTree.fromstring(next(view["svg"] for view in views if "svg" in view))


def words_of(svg):
    return [each.text for each in svg.iter("{http://www.w3.org/2000/svg}text")]


def infos(at):
    return [each.value for each in at.info]


def test_the_table_shows_what_core_computes(parsing, checkpoint):
    at = parsing()
    assert not at.error
    assert_shows(table(at), computed(find_checkpoint(checkpoint)))
    assert "random" not in table(at).columns
    assert any(re.match(r"Relations: from \*\*spaCy\*\*.*4 texts\.", each.value) for each in at.caption)
    assert table(at)["held_out"].isna().any()
    assert any(wording.not_held_out("text") in each.value for each in at.markdown)


def test_as_in_the_authors_code_is_one_setting_that_the_link_keeps(parsing, checkpoint):
    texts = "The cat's mat sat.\nThe dog's house, she said, is red."
    given = [Text((line,)) for line in texts.split("\n")]
    theirs = {"at_clitic": True, "every_word": True, "offsets": (-3, 2)}
    expected = computed(find_checkpoint(checkpoint), given, from_word="first", **theirs)
    at = parsing(corpus_text=texts, **{"as in code": "true"})
    assert_shows(table(at), expected)
    assert not [each for each in at.toggle if each.key == "poss"]
    at.toggle(key="as in code").set_value(False).run()
    assert_shows(table(at), computed(find_checkpoint(checkpoint), given))


def test_what_all_counts_and_the_range_of_offsets_are_settings_of_the_link(parsing, checkpoint):
    expected = computed(find_checkpoint(checkpoint), every_word=True, offsets=(-2, 1))
    link = {"relations every_word": "true", "relations offsets from": "-2", "relations offsets to": "1"}
    assert_shows(table(parsing(**link)), expected)


def test_while_trees_are_parsed_the_bar_says_so(parsing, monkeypatch):
    said, shown = [], DeltaGenerator.progress

    def recorded(self, value, text=None, **more):
        said.append(text)
        return shown(self, value, text, **more)

    monkeypatch.setattr(DeltaGenerator, "progress", recorded)
    parsing(corpus_text="\n".join(f"The cat number {number} sat." for number in range(PARSED_PER_REPORT + 1)))
    assert f"Parsing texts: {PARSED_PER_REPORT} of {PARSED_PER_REPORT + 1}." in " ".join(said)
    assert any(each.startswith("Scoring texts: ") for each in said)


def test_random_weights_stand_beside_the_checkpoint(parsing, checkpoint):
    at = parsing(random="true")
    random = {one.relation: one for one in computed(randomly_initialised(find_checkpoint(checkpoint)))}
    rows = table(at)
    expected = [100 * random[name].best_accuracy for name in rows["relation"]]
    np.testing.assert_array_equal(rows["random"], expected)


def test_the_headline_counts_relations_and_heads(parsing, checkpoint):
    each_in_both_halves = [*TEXTS, "Of the car.", *reversed(TEXTS[1:]), "Of a very old red car."]
    given = [Text((text,)) for text in each_in_both_halves]
    at = parsing(alpha="0.1", corpus_text="\n".join(each_in_both_halves))
    accuracies = computed(find_checkpoint(checkpoint), given, alpha=0.1)
    named = [one for one in accuracies if one.relation != ALL]
    headline, note = headline_of(at), next(each.value for each in at.markdown if "('all' not counted)" in each.value)
    n_beat = sum(one.p_value < 0.1 for one in named)
    held_out = [one for one in named if one.best_of_halves]
    n_above = sum(one.best_accuracy > one.baseline.share for one in held_out)
    assert 0 < n_above < len(held_out) < len(named)
    assert note.startswith(
        f"| The best head beats the best fixed offset | of {len(named)} relations ('all' not counted) |"
    )
    assert f"| on held-out texts | **{n_above}** of {len(held_out)} |" in note
    assert re.search(
        rf"\| significantly, on all texts \(p < 0.1, .+\) \| \*\*{n_beat}\*\* of {len(named)} \|\n\n", note
    )
    best = max(named, key=lambda one: one.best_accuracy - one.baseline.share)
    assert best.best_of_halves == (best.best, best.best)
    head = f"**L{best.best[1]} H{best.best[2]}** ({DIRECTION_NAMES[best.best[0]]})"
    assert headline.startswith(f"Best find: {head} on **{best.relation}**")
    assert f"), right in {best.best_accuracy:.1%} of unseen cases. Always guessing 3 words before gets " in headline
    assert f"; in the other cases, the head is right in {best.best_where_wrong:.1%}" in headline


def test_the_link_keeps_the_number_of_the_sentence_and_no_text(parsing):
    at = parsing(relation="det")
    assert at.query_params["relation sentence"] == at.selectbox(key="relation sentence").value
    at.selectbox(key="relation sentence").set_value("4.1").run()
    assert at.query_params["relation sentence"] == "4.1"
    at = parsing(relation="det", **{"relation sentence": "3.1"})
    assert at.selectbox(key="relation sentence").value == "3.1"
    assert "bird" in words_of(drawn(at))
    assert at.query_params["relation sentence"] == "3.1"


def test_the_headline_names_the_heads_that_were_judged_where_they_are_not_the_best_on_all_texts(parsing, checkpoint):
    order = [TEXTS[place] for place in (0, 1, 3, 2)]
    best = found_by(find_checkpoint(checkpoint), [Text((text,)) for text in order]).largest_gain
    first, second = (f"L{layer} H{head}" for _, layer, head in best.best_of_halves)
    ways = [DIRECTION_NAMES[way] for way, *_ in best.best_of_halves]
    at = parsing(corpus_text="\n".join(order))
    heads = f"**{first}** ({ways[0]}) or **{second}** ({ways[1]}) (one chosen on each half of the texts)"
    assert best.best_accuracy == best.baseline.share
    assert headline_of(at).startswith(
        "No head finds a relation in unseen texts more often than guessing at a fixed distance does. Closest: "
        f"{heads} on **{best.relation}**"
    )
    assert f"right in {best.best_accuracy:.1%} of unseen cases" in headline_of(at)
    assert best.best_of_halves != (best.best, best.best)
    row = table(at).set_index("relation").loc[best.relation]
    assert row["held_out_heads"] == f"{first} {ways[0]} or {second} {ways[1]}"


def headline_of(at):
    return next(each.value for each in at.markdown if re.match("Best find|No head finds.*Closest", each.value))


def test_moving_what_needs_no_pass_runs_none(parsing, monkeypatch):
    at = parsing()

    def refuse(*_, **__):
        raise AssertionError("no pass is needed")

    monkeypatch.setattr(attention_sieve.core.relations.observer, "predictions", refuse)
    before = table(at)["held_out_low"].tolist()
    at.select_slider(key="alpha").set_value(0.1).run()
    assert table(at)["held_out_low"].tolist() != before
    at.selectbox(key="least cases").set_value("5").run()
    at.segmented_control(key="rule").set_value(wording.RELATIVE).run()
    at.selectbox(key="relation").set_value("det").run()
    at.toggle(key="every guess").set_value(True).run()


def test_a_relation_brings_its_best_head_and_its_direction(parsing, checkpoint):
    at = parsing()
    for one in computed(find_checkpoint(checkpoint))[:1]:
        way, layer, head = one.best
        other = next(name for name in DIRECTION_NAMES if name != way)
        at.segmented_control(key="way").set_value(DIRECTION_NAMES[other]).run()
        at.selectbox(key="relation").set_value("amod" if one.relation != "amod" else "det").run()
        at.segmented_control(key="way").set_value(DIRECTION_NAMES[other]).run()
        at.selectbox(key="relation").set_value(one.relation).run()
        assert at.segmented_control(key="way").value == DIRECTION_NAMES[way]
        assert at.session_state["head"] == [(layer, head)]
        grid = sent(at, f"{one.relation}, {DIRECTION_NAMES[way]}")
        assert grid["chosen"] == [[layer, head]]
        points = 100 * (one.accuracy - one.baseline.share)[list(DIRECTION_NAMES).index(way)]
        shown = np.array([[float(text.replace("−", "-") or "nan") for text in row] for row in grid["texts"]])
        np.testing.assert_allclose(shown, points, atol=0.51)


def test_a_link_brings_back_relation_direction_and_head_and_what_is_not_there_falls_back(parsing):
    at = parsing(**{"relation": "no such relation", "least cases": "-3", "relation sentence": "99.9"})
    assert not at.error
    at = parsing(relation="det", way=DIRECTION_NAMES["head-to-dependent"], head="1-0")
    assert at.selectbox(key="relation").value == "det"
    assert at.segmented_control(key="way").value == DIRECTION_NAMES["head-to-dependent"]
    assert sent(at, "det, head → dep")["chosen"] == [[1, 0]]


def test_the_outlines_are_those_of_voitas_rule(parsing, checkpoint):
    """In the second direction that reads the head's row, while the numbers read the dependent's column."""
    by_column, by_row = (
        {one.relation: one for one in computed(find_checkpoint(checkpoint), reading=reading)}
        for reading in ("column", "row")
    )
    least = {wording.POINTS: lambda share: share + 0.1, wording.RELATIVE: lambda share: share * 1.1}

    def marked(one, margin):
        return one.accuracy[1] >= least[margin](one.baseline.share) - 1e-9

    differ = [
        (name, margin)
        for margin in least
        for name in by_row
        if (marked(by_row[name], margin) != marked(by_column[name], margin)).any()
    ]
    assert differ
    for name, margin in (differ[0], next(("det", margin) for margin in least if margin != differ[0][1])):
        at = parsing(relation=name, way=DIRECTION_NAMES["head-to-dependent"], rule=margin)
        grid = sent(at, f"{name}, head → dep")
        shown = np.frombuffer(bytes_of(grid["marked"]), np.uint8).reshape(2, 3)
        assert (shown == marked(by_row[name], margin)).all()
        assert grid["mark"] == wording.MARK_ROW


def bytes_of(text):
    return base64.b64decode(text)


def test_the_arcs_are_those_of_the_chosen_head(parsing, checkpoint):
    at = parsing(relation="det", way=DIRECTION_NAMES["dependent-to-head"], head="1-2")
    name = at.selectbox(key="relation sentence").value
    text = int(name.split(".")[0]) - 1
    (tree,) = dependencies([Text((TEXTS[text],))])
    words, shown = words_of(drawn(at)), tree.words.shown(Text((TEXTS[text],)))
    assert [word for word in words if word in shown] == list(shown)
    sentence = next(each.value for each in at.markdown if re.search(r"\*\*\d+ of \d+\*\* right", each.value))
    n_right, n_all = map(int, re.search(r"\*\*(\d+) of (\d+)\*\* right", sentence).groups())
    assert n_all == tree.relations.count("det")
    assert words.count(CHECK) == n_right
    at.toggle(key="every guess").set_value(True).run()
    assert words_of(drawn(at)).count(CHECK) >= n_right


def test_relations_of_a_file_are_gold_and_its_documents_are_the_units(parsing, checkpoint):
    def uploaded(content, tab=wording.TABLE):
        at = parsing(corpus="upload a file", relation=ALL, **{"relation details": tab})
        at.file_uploader(key="upload").upload("gold.conllu", content.encode())
        at.run()
        return at, " ".join(each.value for each in [*at.markdown, *at.caption, *at.info])

    each_its_own = "".join(f"# newdoc id = {name}\n{CONLLU}\n" for name in "abc")
    at, shown = uploaded(each_its_own)
    assert "Relations: **gold**" in shown
    assert "The texts are from 3 documents, which are the units of halves, intervals and tests" in shown
    assert wording.table_note("document") in shown
    accuracies = computed(find_checkpoint(checkpoint), read_file("gold.conllu", each_its_own.encode()))
    assert_shows(table(at), accuracies)
    np.testing.assert_allclose(table(at)["held_out_design_effect"], [one.best_design_effect for one in accuracies])

    one_document = "# newdoc\n" + f"{CONLLU}\n" * 3
    assert wording.no_bars("document") in uploaded(one_document, wording.BARS)[1]
    at, shown = uploaded(one_document)
    assert "All texts are from one document, so there are no intervals, tests" in shown
    assert wording.no_halves("document") in shown
    assert wording.not_tested(4) in shown
    assert "nan" not in shown
    intervals = sent(at, f"{ALL}, {at.segmented_control(key='way').value}")["details"]
    assert next(line["texts"] for line in intervals if line["label"] == "interval") == [["none"] * 3] * 2

    at, shown = uploaded(CONLLU)
    assert "Documents are unknown, so texts are the units of halves" in shown


def test_texts_that_are_too_long_are_named_and_left_out_or_cut(parsing, checkpoint):
    long_one = "The dog ran and " * 12 + "sat."
    given = "\n".join([*TEXTS, long_one])
    at = parsing(corpus_text=given, random="true")  # random weights ask about long texts once more
    assert any("text 5" in each.value for each in at.warning)
    assert_shows(table(at), computed(find_checkpoint(checkpoint)))
    at.segmented_control(key="long_texts").set_value("cut them").run()
    assert table(at)["cases"].iloc[0] > computed(find_checkpoint(checkpoint))[0].n_cases


def test_an_upload_of_marked_pairs_is_judged_as_core_judges_it_and_drawn_as_marked(app, checkpoint):
    span = [{"relation": "first", "from": [4, 7], "to": [0, 3]}]
    items = [{"text": text, "pairs": span, "document": text[:3]} for text in ("the cat sat", "red dog ran", "she ate")]
    items[1]["pairs"] = [*span, {"relation": "last", "from": [0, 3], "to": [8, 11]}]
    content = "\n".join(map(json.dumps, items)).encode()
    at = app("grammar", checkpoint=checkpoint, corpus=controls.UPLOAD, **{"least cases": FEW})
    at.file_uploader(key="upload").upload("pairs.jsonl", content, "application/json").run()
    expected = computed(find_checkpoint(checkpoint), read_file("pairs.jsonl", content))
    assert_shows(table(at), expected)
    shown = table(at).set_index("relation")
    # The nearest before is right in each; another word where a pair ends is one for another relation.
    assert shown.loc["first", ["nearest", "random_choice"]].tolist() == [100, 100]
    (source,) = [each.value for each in at.caption if each.value.startswith("Relations")]
    assert "**gold**, from the file, for 3 texts. The texts are from 3 documents" in source
    assert "Of a marked pair, *dep* is the word where it begins (from)" in source
    assert "spaCy" not in source
    at.file_uploader(key="upload").upload("pairs.jsonl", content.replace(b"[8, 11]", b"[8, 12]"), "application/json")
    at.run()
    (error,) = [each.value.replace("\\", "") for each in at.error]
    assert error.startswith('Line 2, pair 2: "to" is [8, 12], in a text of 11 characters. Write two numbers')


def test_few_cases_and_none_are_said(parsing):
    at = parsing(**{"least cases": wording.AUTOMATIC})
    assert any(each.startswith("Relations with at least 1 case are shown") for each in infos(at))
    at.selectbox(key="least cases").set_value("200").run()
    assert infos(at) == [
        "No relation has 200 cases in these texts. Give more texts, or lower the minimum number of cases."
    ]
    assert not at.dataframe


def test_a_decoder_looks_back_only_and_says_so(parsing, small):
    at = parsing(checkpoint=small("gpt2", initializer_range=0.9))
    assert wording.LOOKS_BACK in infos(at)
    assert table(at)["cases"].iloc[0] > 0


def test_the_decoder_of_an_encoder_decoder_is_looked_at_on_the_second_segment(parsing, small):
    folder = small("bart", init_std=0.9)
    pairs = [("The old cat sat on the mat.", "A dog ran."), ("She eats red apples.", "The bird sang.")]
    at = parsing(checkpoint=folder, corpus_text="\n".join(" ||| ".join(pair) for pair in pairs), attention="decoder")
    accuracies = computed(find_checkpoint(folder), [Text(pair) for pair in pairs], "decoder")
    assert accuracies[0].accuracy.shape[1:] == (3, 4)
    assert_shows(table(at), accuracies)
    assert any(second.split()[1] in " ".join(words_of(drawn(at))) for _, second in pairs)


def test_across_there_is_no_tree_and_the_page_says_so(parsing, small):
    at = parsing(checkpoint=small("bart", init_std=0.9), attention="cross-attention", corpus_text="The cat ||| A dog")
    assert infos(at) == [shared_wording.CROSS]
    assert not at.dataframe


def test_argmax_and_sieve_are_counted_beside_each_other(parsing, checkpoint):
    at = parsing(**{"relation details": wording.TWO_RULES, "tau": "1"})
    counts = next(each.value for each in at.markdown if "by both and" in each.value)
    n_all, first, second, both, neither = map(int, re.findall(r"\d+", counts[counts.index(" Of ") :]))
    rule = found_by(find_checkpoint(checkpoint)).by_argmax
    assert f"**{rule.heads.sum()} of 6 heads** are *syntactic by argmax* (baseline + 10 points): " in counts
    assert all(f"{n} for {name}" in counts for name, n in rule.n_heads.items() if n)
    sieve = sent(at, wording.SIEVE_GRID)
    held = np.frombuffer(bytes_of(sieve["marked"]), np.uint8).reshape(2, 3).astype(bool)
    assert (n_all, first, second) == (6, rule.heads.sum(), held.sum())
    assert both == (rule.heads & held).sum()
    assert neither == (~rule.heads & ~held).sum()


def test_without_a_relation_of_the_rule_no_head_can_follow_it(parsing):
    at = parsing(corpus_text="Of the cat.\nOn the mat.", **{"relation details": wording.TWO_RULES})
    assert wording.NO_RULE_RELATION in infos(at)


def test_heads_that_are_off_are_named(parsing):
    at = parsing(off="0-1")
    assert any(wording.OFF_STILL_ATTENDS in each.value for each in at.markdown)
    grid = sent(at, at.selectbox(key="relation").value)
    (line,) = [each for each in grid["details"] if each["label"] == "switched off"]
    assert line["texts"] == [["no", "yes", "no"], ["no"] * 3]
    names = table(at)["name"].tolist()
    assert [name for name in names if name.endswith("(off)")] == ["L0 H1 (off)"] * names.count("L0 H1 (off)")
    assert "L0 H1" not in names


def test_cases_are_words_with_the_relation_and_a_head():
    words = Words(segments=np.zeros(4, int), spans=np.array([(0, 1), (2, 3), (4, 5), (6, 7)]))
    trees = Dependencies(words=words, heads=np.array([1, ROOT, 1, 1]), relations=("det", "root", "punct", "dobj"))
    assert is_case(trees, ALL).tolist() == [True, False, False, True]
    assert is_case(trees, ALL, every_word=True).all()
    assert is_case(trees, "det", every_word=True).tolist() == [True, False, False, False]
    assert is_case(trees, "punct").tolist() == [False, False, True, False]
    assert is_case(trees, "root").tolist() == [False] * 4
