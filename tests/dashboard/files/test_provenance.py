"""The command in a file's facts computes what the page shows, from the texts of the archive."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from reading import button, charts, command_of, numbers, once_ended, sent

from attention_sieve.__main__ import main
from attention_sieve.cache.answers import Engine
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.coreference.accuracy import GROUPS
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.surface.frequencies import english_frequencies
from attention_sieve.core.texts.text import read_file, texts_sha256
from attention_sieve.dashboard.figures.roles.chance import OWN
from attention_sieve.dashboard.figures.roles.chance import written as written_counts
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.samples import MENTIONS
from attention_sieve.dashboard.views.comparison import wording as compare_wording
from attention_sieve.dashboard.views.grammar.coreference import wording as coreference_wording
from attention_sieve.dashboard.views.importance import agreement as agreement_wording
from attention_sieve.dashboard.views.importance import backups
from attention_sieve.dashboard.views.importance import wording as importance_wording
from attention_sieve.dashboard.views.importance.material import METRIC_KEY
from attention_sieve.dashboard.views.roles import copying_wording
from attention_sieve.dashboard.views.similarity import wording as similarity_wording
from attention_sieve.dashboard.views.surface import wording as surface_wording
from attention_sieve.dashboard.views.word_links import wording as links_wording
from attention_sieve.dashboard.views.word_links.choice import TABS
from attention_sieve.dashboard.views.word_swap.choice import SWAP

FILES = {
    "a.txt": b"The old dog ran.\nWho sat? ||| A cat sat.\n",
    "a.json": b'[{"words": ["Dogs", "run"], "heads": [2, 0], "relns": ["nsubj", "root"]}, {"text": "\\u00e9t\\u00e9"}]',
    "a.tsv": b"text_a\ttext_b\nOne.\tTwo.\n",
    "b.json": b'[{"words": ["Dogs", "run"]}]',
    "b.jsonl": b'{"ids": [5, 6, 7, 5, 6], "needle": [1, 2], "answer": [4, 5]}\n',
}


@pytest.mark.parametrize("name", FILES)
def test_texts_are_the_same_when_they_are_read_again(name):
    texts = read_file(name, FILES[name])
    again = read_file("texts.jsonl", provenance.lines_of(texts))
    assert again == texts
    assert texts_sha256(again) == texts_sha256(texts)


def test_the_command_scores_as_the_page_does(usual_choice, folders, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    files = find_checkpoint(str(folders("bert")))
    engine, texts = Engine(files, device="cpu", dtype="float32"), read_file("a.txt", FILES["a.txt"])
    settings = ScoreSettings(direction="both", block_entropy=False)
    off = ((0, 1), (1, 2))
    choice = replace(usual_choice, kind="self", off=off, criterion=Criterion(tau=1.5), score_settings=settings)
    provenance.begin_page()
    fact = provenance.command("score", choice, engine, texts, *provenance.role_options(choice, engine))["command"]
    program, *arguments = shlex.split(fact)
    assert program == "attention-sieve"
    ((name, content),) = provenance.files_read().items()
    (tmp_path / name).write_bytes(content())
    assert main(arguments) == 0
    facts = pd.read_parquet("score.parquet").attrs
    assert facts["heads off"] == "L0 H1, L1 H2"
    assert (facts["direction"], facts["block entropy"]) == ("both", "no")
    assert facts["texts sha256"] == texts_sha256(texts)


def test_what_no_command_computes_says_so():
    facts = {"checkpoint": "bundled", "command": "attention-sieve roles"}
    assert provenance.with_command(facts) == facts
    assert provenance.with_command({"checkpoint": "bundled"}) == provenance.without_command(facts)
    assert provenance.without_command(facts)["command"] == provenance.NO_COMMAND


TEXTS = "\n".join(
    ["The patient nurse gently washed it.", "A stray dog chased them.", "He sold his van.", "A bird sang."] * 2
)
STEP = 1e-3
"""Between two numbers of half precision, in which maps are written."""
REPEATS = ["the cat ran and the cat ran and the dog sat", "the dog sat and the dog sat and the cat ran"]
SWAPPED = ("The cat sat on the red mat.", "The cat sat on the black mat.")


def mapped(at, label):
    """The numbers of a map of heads, as parts of the largest."""
    parts = numbers(sent(at, label)["parts"], "<f4")
    return parts / parts.max()


def of_coreference(at):
    table = pd.read_parquet("coreference.parquet")
    found = table["accuracy"][table["group"] == GROUPS[0]]
    return mapped(at, f"{GROUPS[0]} mentions"), found / found.max()


def of_table(shown, file, column=""):
    """The numbers of a column of a table, which has the column `shown`, and of the file."""

    def numbers(at):
        return table(at, shown)[column or shown], pd.read_parquet(f"{file}.parquet")[column or shown]

    return numbers


def of_controls(at):
    shown, heads = table(at, OWN), pd.read_parquet("controls.parquet").groupby(["control", "role"])["heads"]
    counts = shown.set_index("role").rename(columns={OWN: "none"}).stack()
    titles = {role_title(role): role for _, role in heads.groups}
    found = [written_counts(heads.get_group((control, titles[role])).tolist()) for role, control in counts.index]
    assert len(set(found)) > 1
    return counts == found, [True] * len(found)


def of_relations(at):
    written = pd.read_parquet("relations.parquet")
    return table(at, "accuracy")["accuracy"], 100 * written[written["best"]]["accuracy"]


def of_claim(at):
    return table(at, "verdict")["score"], pd.read_parquet("claim.parquet")["mean"].round(2)


def of_surface(at):
    written, shown = pd.read_parquet("surface.parquet"), table(at, "statistic")
    also_shown = written["statistic"].map(surface_wording.STATISTICS).isin(shown["statistic"])
    return shown["mean"], written[also_shown]["mean"]


def of_similarity(at):
    written = pd.read_parquet("similarity.parquet").sort_values("divergence")["divergence"]
    shown = table(at, "divergence")["divergence"]
    return shown, written[: len(shown)]


def of_sinks(at):
    (said,) = (each.value for each in at.markdown if "of heads are attention sinks" in each.value)
    written = pd.read_parquet("sinks.parquet")
    found = [round(100 * written["share_of_texts"].mean()), int(written.attrs["texts"])]
    assert 0 < found[0] < 100
    return list(map(int, re.findall(r"\d+", said))), found


def of_gradients(at):
    drawn = charts(at)[-1]
    shown = drawn[drawn["kind"] == "point"].dropna(subset="value").sort_values(["layer", "value"])
    written = pd.read_parquet("gradients.parquet").dropna(subset="mean").sort_values(["layer", "mean"])
    return shown["value"], written["mean"]


def of_word_links(at):
    shares = pd.read_parquet("word-links.parquet")["share"]
    return mapped(at, "Links "), shares / shares.max()


def of_probes(at):
    files = [Path(f"{name}.summary.json") for name in ("tree-probes", "tree-probes-of-words")]
    alone, of_words = (json.loads(file.read_text())["UAS"] for file in files)
    kinds = ("probe", "random control")
    return table(at, "uas")["uas"][:4], [summary[kind]["share"] for kind in kinds for summary in (alone, of_words)]


def of_swap(at):
    maps = np.load("maps.npz")
    a, b = (maps[f"{row:05} attention"].astype(float) for row in range(2))
    found = np.abs(b - a)[..., 1:-1, :].sum(axis=-1).mean(axis=-1).ravel()
    return mapped(at, "Attention that moves"), found / found.max()


def table(at, column):
    return next(each.value for each in at.dataframe if column in each.value)


COREFERENCE = {"grammar section": "Coreference", "minus": coreference_wording.NOTHING, "window tokens": "64"}
COMPARE = {"compare details": compare_wording.TABLE, "tau": "1.5", "correction": "holm", "text": "A cat."}
PROBES = {"grammar section": "Probes", "probe epochs": "2", "probe seed": "3"}
RELATIONS = {"relations every_word": "true", "relations offsets from": "-2"}
SCORES = json.dumps({"0-1": 0.9, "1-0": 0.2, "1-1": 0.1})
CLAIM = {"claim": SCORES, "claim role": "previous", "claim on corpus": "true"}
BACKUPS = {"importance details": backups.TAB, METRIC_KEY: importance_wording.LM}
AGREEMENT = {"importance details": agreement_wording.TAB}
SIMILARITY = {"similarity details": similarity_wording.TABLE, "similarity rows": "9"}
SURFACE = {"surface details": surface_wording.TABLE, "surface punctuation": ","}
GRADIENTS = {"surface details": surface_wording.LAYERS, "frequencies": surface_wording.BY_WORDFREQ}
LINKS = {"text": "A dog sat.", TABS: links_wording.TITLE}
SINKS = {"corpus_text": "\n".join(["mat" + 80 * " dog", "sat" + 80 * " the"]), "sinks tokens": "20", "sinks eps": "0.2"}
CHANCE = {"chance": "true", "method": "mean alone", "tau": "1.05"}
COPYING = {"details": copying_wording.TITLE, "corpus_text": "\n".join(REPEATS), "copying times": "1.5"}
WITHOUT_ONE = {"details": "Table", "tau": "1.5", "off": "0-1"}
ONE_HEAD = of_table("even_head", "single-heads", "without")
PAGES = {
    "roles": ("roles", "table of roles", WITHOUT_ONE, of_table("holds", "roles", "mean")),
    "controls": ("roles", "table of controls", CHANCE, of_controls),
    "relations": ("grammar", "table of relations", RELATIONS, of_relations),
    "claim": ("claims", "table of claim", CLAIM, of_claim),
    "surface": ("surface", "table of surface", SURFACE, of_surface),
    "sinks": ("roles", "table of sinks", SINKS, of_sinks),
    "gradients": ("surface", "gradients", GRADIENTS, of_gradients),
    "word links": ("inspect", "map of links over the corpus", LINKS, of_word_links),
    "ablation": ("importance", "table of ablation", {}, of_table("delta", "ablate")),
    "single heads": ("importance", "table of one head a layer", {"keep one": "true"}, ONE_HEAD),
    "backups": ("importance", "table of sets of heads", BACKUPS, of_table("beyond", "backups")),
    "importance": ("importance", "table of correlations with ablation", AGREEMENT, of_table("spearman", "agreement")),
    "similarity": ("similarity", "table of distances of heads", SIMILARITY, of_similarity),
    "copying": ("roles", "table of copying", COPYING, of_table("looks", "copying")),
    "coreference": ("grammar", "map of antecedents", COREFERENCE, of_coreference),
    "comparison": ("compare", "table of differences", COMPARE, of_table("mean_b", "compare", "p_adjusted")),
    "tree probes": ("grammar", "table of probe scores", PROBES, of_probes),
    "word swap": ("inspect", "map of moved attention", {"text": SWAPPED[0], SWAP: SWAPPED[1]}, of_swap),
}


def test_the_page_of_each_analysis_is_compared_with_its_command():
    assert {analysis.name.replace("_", " ") for analysis in ANALYSES} <= PAGES.keys()


@pytest.mark.parametrize("name", PAGES)
def test_the_command_of_a_page_computes_the_numbers_that_the_page_shows(
    name, app, small, writing, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    page, download, link, numbers = PAGES[name]
    if name == "comparison":
        link = link | {"with": small("bert", "SequenceClassification", num_labels=2, initializer_range=0.9)}
    of_name = {
        "sinks": ("llama", "CausalLM", {"max_position_embeddings": 400, "initializer_range": 1.0}),
        "gradients": ("bert", "MaskedLM", {}),
        "backups": ("bert", "MaskedLM", {"initializer_range": 0.1}),
    }
    family, head, changed = of_name.get(name, ("bert", "", {}))
    checkpoint = str(writing) if name == "copying" else small(family, head, **changed)
    at = app(page, **{"checkpoint": checkpoint, "corpus_text": TEXTS, **link})
    if name == "tree probes":
        at = once_ended(at.button("train").click().run())
    elif name == "sinks":
        at.toggle(key="sink share").set_value(True).run()
    elif name == "gradients":
        button(at, surface_wording.COMPUTE).click().run()
    elif name == "word links":
        at.session_state["links over corpus"] = True
        at.run().selectbox(key="linked by").set_value("nsubj").run()
    Path("scores.json").write_text(SCORES, "utf-8")
    Path("mentions.jsonl").write_bytes(MENTIONS.read_bytes())
    read = SWAPPED if name == "word swap" else link.get("corpus_text", TEXTS).split("\n")
    Path("frequencies.txt").write_text("\n".join(english_frequencies().rank_of), "utf-8")
    Path("texts.jsonl").write_bytes(provenance.lines_of(read_file("a.txt", "\n".join(read).encode())))
    for words in command_of(at, download):
        assert main(words) == 0, words
    shown, found = numbers(at)
    assert len(shown) > 1
    np.testing.assert_allclose(shown, found, atol=STEP if name == "word swap" else 1e-5)
