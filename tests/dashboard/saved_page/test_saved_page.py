"""The saved page: what its file holds and allows, and what `check` says of it."""

import base64
import hashlib
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import attention_sieve as sieve
from attention_sieve.__main__ import main
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.comparison.differences import paired_tests
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.saved_page import content as saved_content
from attention_sieve.dashboard.saved_page.check import check_page
from attention_sieve.dashboard.saved_page.content import PageRequest, compute
from attention_sieve.dashboard.saved_page.data import page_data
from attention_sieve.dashboard.saved_page.file import AFTER_DATA, BEFORE_DATA, BEFORE_DRAWN, page_html, read_page

HOSTILE = '</script><script>alert(1)</script><!-- & "quotes" \u2028'
TEXTS = (
    Text(("Who saw the old dog?", "The old dog chased a cat.")),
    Text(("Who closed the shop?", "She closed her small shop.")),
    Text((HOSTILE, "Nobody laughed.")),
)
REQUEST = PageRequest(
    pass_settings=PassSettings(), settings=RoleSettings(criterion=Criterion(tau=2.0)), texts=TEXTS, chosen=[(1, 8)]
)


@pytest.fixture(scope="module")
def content(bundled):
    return compute([bundled], replace(REQUEST, drawn=[Text((HOSTILE,))]))


@pytest.fixture(scope="module")
def data(content):
    return page_data(content)


@pytest.fixture(scope="module")
def html(data):
    return page_html(data)


@pytest.fixture(scope="module")
def other_folder(folders):
    return folders("bert")


def changed(html, change):
    data, _ = read_page(html.encode(), "page.html")
    change(data)
    drawn = data.pop("drawn")
    for begins, value in ((BEFORE_DATA, data), (BEFORE_DRAWN, drawn)):
        before, rest = html.split(begins)
        _, after = rest.split(AFTER_DATA, 1)
        written = json.dumps(value, separators=(",", ":")).replace("<", r"\u003c")
        html = f"{before}{begins}{written}{AFTER_DATA}{after}"
    return html


def test_the_tables_and_grid_hold_what_the_call_finds(data, bundled):
    found = sieve.roles(bundled, [text.segments for text in TEXTS], tau=2).table
    (table,) = data["tables"]
    assert list(table["values"]) == list(found.columns)
    mean, p = (np.array(table["values"][name], float) for name in ("mean", "p_adjusted"))
    np.testing.assert_allclose(mean, found["mean"], rtol=1e-6)
    np.testing.assert_allclose(p, found["p_adjusted"], rtol=1e-6)
    assert table["values"]["holds"] == found["holds"].tolist()
    scores = np.frombuffer(base64.b64decode(data["grids"][0]["scores"]), "<f4")
    np.testing.assert_allclose(scores, found["mean"], rtol=1e-6)
    assert data["facts"].items() >= {"tau": "2", "texts": "3", "checkpoint": "bundled"}.items()
    assert data["first"] == [[1, 8]]


def test_a_page_of_144_heads_in_128_tokens_has_at_most_five_megabytes(guessing, tmp_path):
    from transformers import AutoTokenizer, BertConfig, BertModel

    tokenizer = AutoTokenizer.from_pretrained(guessing)
    sizes = {"num_hidden_layers": 12, "num_attention_heads": 12, "hidden_size": 24, "intermediate_size": 8}
    model = BertModel(BertConfig(vocab_size=len(tokenizer), max_position_embeddings=128, **sizes))
    path = sieve.save_page(tmp_path / "a.html", model, ["a " * 126, "A cat."], tokenizer=tokenizer, parser=False)
    (side,) = read_page(path.read_bytes(), path.name)[0]["drawn"][0]["sides"]
    assert (side["patterns"]["queries"], side["patterns"]["keys"]) == (128, 128)
    assert 144 * 128**2 < path.stat().st_size < 5_000_000


def test_texts_and_names_are_data_and_never_end_their_element(data, html):
    assert read_page(html.encode(), "page.html")[0] == json.loads(json.dumps(data))
    assert html.count("<script") == html.count("</script>") == 3
    assert HOSTILE not in html
    named = page_html({**data, "title": HOSTILE, "command": HOSTILE, "sentences": [HOSTILE], "notes": [HOSTILE]})
    assert named.count("<script") == 3
    assert HOSTILE not in named


def test_only_the_script_and_style_that_the_policy_names_are_in_the_page_and_it_asks_for_nothing(html):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]+)"', html)[1]
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert rules["default-src"] == rules["base-uri"] == rules["form-action"] == "'none'"
    for name, element in (("script", r"<script>(.*?)</script>"), ("style", r"<style>(.*?)</style>")):
        (text,) = re.findall(element, html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[f"{name}-src"] == f"'sha256-{digest}'"
    assert "unsafe" not in policy
    assert not re.search(r"\ssrc=|\shref=|url\(|@import|\bfetch\(|\bimport\b ?[\(\"'{*]", html)


def replaced(old, new):
    return lambda html: html.replace(old, new, 1)


def set_three(data):
    data["tables"][0]["values"]["mean"][8] += 0.01
    set_step(data["drawn"][0]["sides"][0]["patterns"])
    data["facts"]["texts"] = "3,000"


def set_difference(data):
    set_step(data["drawn"][0]["difference"]["sides"][1])


def set_step(patterns):
    steps = bytearray(base64.b64decode(patterns["cells"]))
    steps[7] ^= 64
    patterns["cells"] = base64.b64encode(steps).decode()


def test_check_finds_each_changed_value_and_fails(html, tmp_path, capsys):
    path = tmp_path / "page.html"
    path.write_text(changed(html, set_three), encoding="utf-8")
    assert main(["check", str(path), "--device", "cpu"]) == 1
    *found, last = sorted(capsys.readouterr().out.splitlines(), key=lambda line: line.startswith("3 of"))
    for said in (
        r'table "Roles in all-MiniLM-L6-v2", row 9 \(local, L0 H8\), column mean: [\d.]+ in the page, ',
        r"drawn, 0, sides, 0, patterns, cells, number 8 of [\d,]+: \d+\.0 in the page, \d+\.0 computed",
        "facts, texts: 3,000 in the page, 3 computed",
    ):
        assert len([line for line in found if re.match(said, line)]) == 1
    assert re.match(r"3 of [\d,]+ values of .*page\.html differ\.", last)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (replaced("<h2", "<h2 hidden"), "changed outside of its data: its script, style or markup"),
        (replaced("const page =", "const page_ ="), "changed outside of its data"),
        (replaced('"format":1', '"format":2'), r"in format 2, and \S+ reads formats up to 1. Install a newer"),
        (replaced('"dtype":"float32"', '"dtype":32'), "page.html is damaged: its data cannot be read"),
        (lambda html: html[: len(html) // 2], "page.html is damaged: its data are not whole"),
        (lambda html: "<p>Hello</p>", "page.html is no page of Attention Sieve"),
    ],
)
def test_a_page_that_cannot_be_checked_is_refused_with_a_sentence(change, said, html):
    with pytest.raises(AnalysisError, match=said):
        check_page(change(html).encode(), "page.html")


def test_a_checkpoint_that_is_missing_or_another_is_named(html, other_folder, tmp_path):
    with pytest.raises(AnalysisError, match=r"of the checkpoint bundled, which is not here.* --checkpoint FOLDER"):
        check_page(html.encode(), "page.html", [str(tmp_path / "gone")])
    with pytest.raises(AnalysisError, match=r"fingerprint [0-9a-f]{12}, and .* has [0-9a-f]{12}: another model"):
        check_page(html.encode(), "page.html", [str(other_folder)])
    with pytest.raises(AnalysisError, match="The page is of 1 checkpoints, got 2"):
        check_page(html.encode(), "page.html", ["bundled", "bundled"])


STEERING = "\x1b[2J\nEqual\x07"


def set_version(data):
    data["program"] = data["facts"]["program"] = f"0.0.0{STEERING}"
    data["sentences"][0] = STEERING


def test_a_page_of_another_version_is_not_approved_and_steers_no_terminal(html, tmp_path, capsys):
    path = tmp_path / "page.html"
    path.write_text(changed(html, set_version).replace("<h2", "<script>alert(1)</script><h2"), encoding="utf-8")
    assert main(["check", str(path), "--device", "cpu"]) == 1
    said = capsys.readouterr()
    assert re.match(
        r"It says that Attention Sieve 0\.0\.0\\x1b.* wrote it, and this is \S+: its script, style and", said.err
    )
    assert "sentences, 0: \\x1b[2J\\nEqual\\x07 in the page" in said.out
    assert not set("\x1b\x07") & set(said.out + said.err)
    assert not re.search("^Equal", said.out + said.err, re.MULTILINE)
    path.write_text(changed(html, lambda data: data.update(program="0.0.0")), encoding="utf-8")
    assert main(["check", str(path), "--device", "cpu"]) == 1


def test_a_page_makes_nobody_ask_the_hub_for_what_it_names(html):
    def set_name(data):
        data["asked"]["checkpoints"][0]["name"] = "organisation/evil"

    page = changed(html, set_name).encode()
    with pytest.raises(
        AnalysisError, match=r"hub is asked only for what you name: .* with --checkpoint organisation/evil"
    ):
        check_page(page, "page.html")
    with pytest.raises(AnalysisError, match="The hub could not be reached for organisation/other"):
        check_page(page, "page.html", ["organisation/other"])


def test_two_checkpoints_are_compared_as_paired_tests_compare_them(other_folder):
    one, other = (load_checkpoint(find_checkpoint(str(other_folder)), device="cpu") for _ in range(2))
    found = compute(
        [one, replace(other, files=replace(other.files, name="twin"))], replace(REQUEST, chosen=(), texts=TEXTS[:2])
    )
    data = page_data(found)
    comparison = data["tables"][0]["values"]
    scored = [each.finding.scored for each in found.found]
    tests = paired_tests(*(each.scores for each in scored), scored[0].roles)
    np.testing.assert_allclose(np.array(comparison["mean_b"], float), tests.mean_b.ravel(), rtol=1e-6)
    assert set(comparison["difference"]) <= {0, None}
    assert [table["kind"] for table in data["tables"]] == ["comparison", "roles", "roles"]
    assert data["sentences"][0].startswith("From ")
    assert len(data["drawn"][0]["sides"]) == len(data["grids"]) == len(data["overlaps"]) == 2
    assert data["grids"][1]["compared"]
    assert "--compare twin" in data["command"]
    assert data["drawn"][0]["difference"]["sides"] is None, "the weights of both sides give it"


def test_the_difference_under_two_tokenizers_is_between_their_common_words_and_is_checked(folders, tmp_path, capsys):
    names, text = [str(folders(family)) for family in ("bert", "roberta")], "The old dogs chased a cat."
    path = sieve.save_page(tmp_path / "two.html", names[0], [text, "She sang."], compare=names[1], device="cpu")
    data, html = read_page(path.read_bytes(), path.name)
    difference = data["drawn"][0]["difference"]
    assert difference["arcs"]["queries"]["tokens"] == ["[special]", "The", "old", "dogs", "chased", "a", "cat."]
    for name, side in zip(names, difference["sides"], strict=True):
        steps = np.frombuffer(base64.b64decode(side["cells"]), np.uint8).reshape(2, 3, 7, 7)
        tokens = sieve.attention(name, text)
        to_special = tokens.weights[..., [0, -1]][..., [0, -1], :].sum(axis=-1).mean(axis=-1)
        np.testing.assert_allclose((steps[..., 0, 0] / 255) ** 2, to_special, atol=0.005)
    assert not any(name in html for name in names), "who gets a page learns no path"
    for name, side in zip(data["asked"]["checkpoints"], names, strict=True):
        assert name["name"] == Path(side).name
    checked = ["check", str(path), "--device", "cpu", "--checkpoint", names[0], "--checkpoint", names[1]]
    assert main(checked) == 0
    path.write_text(changed(html, set_difference), encoding="utf-8")
    assert main(checked) == 1
    assert "drawn, 0, difference, sides, 1, cells, number 8 of 294: " in capsys.readouterr().out


def test_what_a_page_cannot_hold_is_refused(bundled, other_folder):
    other = load_checkpoint(find_checkpoint(str(other_folder)), device="cpu")
    with pytest.raises(AnalysisError, match=r"6 layers of 12 heads and \d layers of \d heads, so that no head"):
        compute([bundled, other], REQUEST)
    with pytest.raises(AnalysisError, match="There is no head L6 H0: bundled has 6 layers x 12 heads"):
        compute([bundled], replace(REQUEST, chosen=[(6, 0)]))
    with pytest.raises(AnalysisError, match=r"12,[\d,]+ weights, and a page holds at most 12,000,000"):
        saved_content.check_weights(12_000_001)


def test_a_model_in_memory_is_saved_and_checked_against_its_folder(guessing, tmp_path):
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = (kind.from_pretrained(guessing) for kind in (AutoModel, AutoTokenizer))
    path = sieve.save_page(tmp_path / "heads.html", model, ["The old dog.", "A cat."], tau=1.5, tokenizer=tokenizer)
    html = path.read_bytes()
    assert b"in the memory of a program" in html
    with pytest.raises(AnalysisError, match=r"BertModel in memory, which is not here. Name its saved folder"):
        check_page(html, "heads.html")
    checked = check_page(html, "heads.html", [str(guessing)], device="cpu")
    assert checked.differences == ()
    assert "nothing shows that" in checked.notes[0]
    with pytest.raises(TypeError, match="unexpected keyword argument 'tua'"):
        sieve.save_page(path, model, "A cat.", tua=3)
    with pytest.raises(AnalysisError, match=r"Choose a name that ends in \.html"):
        sieve.save_page(tmp_path / "heads.pdf", model, "A cat.")


def test_the_command_that_a_page_names_makes_the_same_page(data, html, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / data["texts"]["file"]).write_text(json.dumps(data["texts"]["objects"]))
    words = data["command"].split(" --text ")[0].split(" ")[1:]
    main([*words, "--text", HOSTILE, *["--tau", "2", "--heads", "1-8", "--device", "cpu", "--output", "page.html"]])
    assert data["command"].endswith("--heads 1-8 --tau=2.0 --output page.html")
    checked = check_page((tmp_path / "page.html").read_bytes(), "page.html", device="cpu")
    assert (checked.differences, checked.notes) == ((), ())
    assert checked.n_values > 10_000
    assert (tmp_path / "page.html").read_text("utf-8").count("\n") == html.count("\n")


def test_a_page_with_a_written_role_is_made_again_by_its_command(bundled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    role = 'role = 1\nname = "just before"\nletter = "X"\ncolour = "#123456"\n[to]\noffset = -1\n'
    (tmp_path / "mine.toml").write_text(role)
    path = sieve.save_page("mine.html", bundled, ["The old dog ran.", "She sang."], role="mine.toml", parser=False)
    data, html = read_page(path.read_bytes(), path.name)
    assert data["facts"]["roles"].endswith(", just before")
    (tmp_path / "mine.toml").unlink()
    (tmp_path / data["texts"]["file"]).write_text(json.dumps(data["texts"]["objects"]))
    assert main([*shlex.split(data["command"])[1:], "--device", "cpu"]) == 0
    assert (tmp_path / "page.html").read_text("utf-8") == html
