"""Input that nobody should give, through the whole chain: a right result or a sentence."""

import json
import shutil
import struct

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from passing import look_at, measure
from safetensors.torch import load_file
from small_checkpoints import TOKENIZERS, edit_json, gpt2_tokenizer

from attention_sieve.core.checkpoints.checks.files import MAX_JSON_BYTES, MAX_LAYERS
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, CheckpointError, NoTokens, TextError, TextTooLong
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.texts.text import MAX_CHARACTERS, Text, read_file, read_typed
from attention_sieve.core.texts.tokens import SPECIAL, tokenize

KINDS = ("bert", "roberta", "albert", "gpt2", "llama")
FAMILY = "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL}"
FLAGS = "\U0001f1e9\U0001f1ea\U0001f1eb\U0001f1f7"
THUMB = "\N{THUMBS UP SIGN}\U0001f3fd"
HEBREW = "שָׁלוֹם עולם"
ARABIC = "\u200fمرحبا \u202bالعالم\u202c abc"
ZALGO = "c\u0301\u0323a\u0316t"
HINDI = "नमस्ते दुनिया"
THAI = "สวัสดีครับ"
UNUSUAL = (
    HEBREW, ARABIC, ZALGO, HINDI, THAI, FAMILY, FLAGS, THUMB, "❤\ufe0f", "\u1112\u1161\u11ab", "a\x01b \x07c",
    "İstanbul ﬁ ß", "a\u2028b\x0bc\x0cd\x85e", "a\u00a0b\u3000c\u2009d", "a\ufffe b\U0010ffff\ufff9",
    "[SEP] [CLS] [PAD] </s> <s> <|endoftext|>", "[UNK] <unk>",
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizers():
    return {kind: TOKENIZERS[kind]() for kind in KINDS}


def load(folder, dtype="float32"):
    return load_checkpoint(find_checkpoint(str(folder)), device="cpu", dtype=dtype)


def measured(checkpoint, *texts, **chosen):
    return sorted(measure(checkpoint, texts, **chosen), key=lambda text: text.position)


def is_sound(text, given_text):
    """Tokens, ids, spans and words of a tokenized text belong together and to the text."""
    n_tokens = len(text.ids)
    assert len(text.tokens) == len(text.spans) == len(text.words) == len(text.segments) == n_tokens
    assert all(text.tokens)
    own = text.segments != SPECIAL
    assert ((text.words == SPECIAL) == ~own).all()
    assert set(np.diff(text.words[own])) <= {0, 1}
    assert text.words[own][0] == 0
    for side, segment in enumerate(given_text.segments):
        spans = text.spans[text.segments == side]
        assert len(spans)
        assert (spans >= 0).all()
        assert (spans <= len(segment)).all()
        assert (spans[:, 0] <= spans[:, 1]).all()
        assert (np.diff(spans[:, 0]) >= 0).all()
        for start, end in spans.tolist():
            assert segment[start:end] == segment[start:end].strip()
    return True


# Any text at all

ANY = st.text(st.characters(), max_size=40)
SIGNS = [*"ab [SEP]<|>/s\t\n\r\0\ud800\ufeff\u200b\u200d\u00ad\u0301\u05b8\u202e\x01\x85\u2028▁Ġ##İß", FAMILY, THUMB]
ODD = st.lists(st.sampled_from(SIGNS), max_size=30).map("".join)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(value=ANY | ODD)
@example(value=" ||| ".join([HEBREW, ARABIC]))
@example(value="▁")
@example(value="\u0301a")
@example(value="a\u0345\u0301 ||| \u200b")
def test_any_text_gives_sound_tokens_or_a_sentence(kind, value, tokenizers):
    try:
        texts = read_typed(value)
        tokenized = [tokenize(text, tokenizers[kind], 100_000) for text in texts]
    except AnalysisError:
        return
    assert all(is_sound(one, text) for one, text in zip(tokenized, texts, strict=True))


@settings(deadline=None, max_examples=20)
@given(value=ODD)
def test_any_text_is_measured_and_drawn_or_gets_a_sentence(value, loaded):
    checkpoint = loaded("bert")
    try:
        texts = read_typed(value)
        found = measured(checkpoint, *texts, too_long="truncate")
        seen, of_first = look_at(checkpoint, texts[0], too_long="truncate")
    except AnalysisError:
        return
    assert len(found) == len(texts)
    for text in found:
        assert text.measures.shape == (len(USUAL.measures), 2, 3)
        assert np.isfinite(text.measures[USUAL.measures.index("local")]).all()
    np.testing.assert_allclose(seen.attention.sum(-1), 1, atol=1e-5)
    np.testing.assert_allclose(of_first.measures, found[0].measures, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", ["bert", "roberta", "albert", "gpt2"])
def test_unusual_scripts_and_signs_are_measured_alone_and_in_a_pair(kind, loaded):
    typed = "\n".join(f"{unusual}\na cat ||| {unusual}" for unusual in UNUSUAL)
    found = measured(loaded(kind), *read_typed(typed), too_long="truncate")
    assert len(found) == 2 * len(UNUSUAL)
    for text in found:
        assert np.isfinite(text.measures[USUAL.measures.index("local")]).all()
        assert text.n_tokens > 0


# Right-to-left, combining and emoji: by hand


@pytest.mark.parametrize(
    ("value", "tokens", "spans", "words"),
    [
        # Points are taken off by the normalizer and belong to no token: shin at 0, lamed at 3, vav at 4, mem at 6.
        (HEBREW, "[CLS] ש ##ל ##ו ##ם ע ##ו ##ל ##ם [SEP]",
         [(0, 0), (0, 1), (3, 4), (4, 5), (6, 7), (8, 9), (9, 10), (10, 11), (11, 12), (0, 0)],
         [-1, 0, 0, 0, 0, 1, 1, 1, 1, -1]),
        # The marks of direction at 0, 7 and 14 go; letters stay in the order they are read, not as they are drawn.
        (ARABIC, "[CLS] م ##ر ##ح ##ب ##ا ا ##ل ##ع ##ا ##ل ##م abc [SEP]",
         [(0, 0), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (8, 9), (9, 10), (10, 11), (11, 12), (12, 13), (13, 14),
          (16, 19), (0, 0)],
         [-1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, -1]),
        # One token over letters and all their marks.
        (ZALGO, f"[CLS] {ZALGO} [SEP]", [(0, 0), (0, 6), (0, 0)], [-1, 0, -1]),
        (f"a {FAMILY} {FLAGS} {THUMB} b", "[CLS] a [UNK] [UNK] [UNK] b [SEP]",
         [(0, 0), (0, 1), (2, 7), (8, 12), (13, 15), (16, 17), (0, 0)], [-1, 0, 1, 2, 3, 4, -1]),
        # A Thai sentence has no blanks and is unknown as a whole.
        (THAI, "[CLS] [UNK] [SEP]", [(0, 0), (0, 10), (0, 0)], [-1, 0, -1]),
        (HINDI, "[CLS] न ##म ##स ##त द ##न ##ि ##य ##ा [SEP]",
         [(0, 0), (0, 1), (1, 2), (2, 3), (4, 5), (7, 8), (9, 10), (10, 11), (11, 12), (12, 13), (0, 0)],
         [-1, 0, 0, 0, 0, 1, 1, 1, 1, 1, -1]),
    ],
    ids=["hebrew", "arabic", "zalgo", "emoji", "thai", "hindi"],
)  # fmt: skip
def test_scripts_under_the_bundled_checkpoint_worked_by_hand(value, tokens, spans, words, bundled):
    text = tokenize(read_typed(value)[0], bundled.tokenizer, 512)
    assert text.tokens == tuple(tokens.split(" "))
    assert text.spans.tolist() == [list(span) for span in spans]
    assert text.words.tolist() == words


@pytest.mark.parametrize(
    ("value", "pieces"),
    [
        # Bytes of one sign are tokens of one span: 2 a Hebrew letter, 3 a joiner or Thai letter, 4 an emoji.
        ("שם", [(0, 1)] * 2 + [(1, 2)] * 2),
        ("é", [(0, 1)] * 2),
        ("e\u0301", [(0, 1)] + [(1, 2)] * 2),
        (FAMILY, [(0, 1)] * 4 + [(1, 2)] * 3 + [(2, 3)] * 4 + [(3, 4)] * 3 + [(4, 5)] * 4),
        (THUMB, [(0, 1)] * 4 + [(1, 2)] * 4),
        ("a \u200fב", [(0, 1), (2, 2)] + [(2, 3)] * 3 + [(3, 4)] * 2),
    ],
)
def test_bytes_of_a_sign_stand_on_the_whole_sign(value, pieces, tokenizers):
    text = tokenize(Text((value,)), tokenizers["roberta"], 100)
    assert text.spans[1:-1].tolist() == [list(piece) for piece in pieces]


# Nothing a checkpoint could read


@pytest.mark.parametrize(
    "value", ["\u200b\u200d", "\x01\x02\x07", "\u00ad", "\u200f\u202e", "\u0301\u0302", "\ue000\x7f"]
)
def test_a_text_of_which_nothing_is_left_gets_its_place(value, bundled):
    given_texts = read_typed(f"A cat slept.\n{value}")
    with pytest.raises(NoTokens, match=r"^Text 2 has a segment without any token of this checkpoint\. Give it at"):
        measured(bundled, *given_texts)
    with pytest.raises(NoTokens, match=r"^The text has a segment"):
        look_at(bundled, given_texts[1])
    with pytest.raises(NoTokens):
        look_at(bundled, Text(("A cat slept.", value)))


# Length


def test_a_line_of_a_million_characters_gets_a_sentence_wherever_it_stands():
    line = "x" * 1_000_000
    sentence = r"has 1,000,000 characters and at most 500,000 are read\. Cut it"
    with pytest.raises(TextError, match=sentence):
        read_typed(f"One.\na ||| {line}")
    for content in ([line], {"text_a": "a", "text_b": line}, {"words": [line[2:], "b"]}):
        with pytest.raises(TextError, match=sentence):
            read_file("a.json", json.dumps(content).encode())


@pytest.mark.parametrize(
    ("value", "n_tokens"),
    [("x", 3), ("e\u0301", 3), ("a ", 250_002)],
)
def test_the_longest_line_has_its_tokens_counted(value, n_tokens, bundled):
    """Letters and signs without a blank are one unknown token once there are more than a hundred."""
    (text,) = read_typed(value * (MAX_CHARACTERS // len(value)))
    if n_tokens > bundled.max_tokens:
        with pytest.raises(TextTooLong, match=rf"^The text has {n_tokens:,} tokens and this checkpoint takes 512"):
            tokenize(text, bundled.tokenizer, bundled.max_tokens)
    cut = tokenize(text, bundled.tokenizer, bundled.max_tokens, truncate=True)
    assert len(cut.ids) + cut.n_cut == n_tokens
    assert is_sound(cut, text)


def test_no_text_that_can_be_read_is_too_long_for_the_parser():
    from attention_sieve.core.texts.parsers import english_parser
    from attention_sieve.core.texts.parsing import _pipeline

    assert _pipeline(english_parser()).max_length >= MAX_CHARACTERS


# Broken checkpoints


def test_a_padding_token_outside_the_embedding_does_no_harm(folders, loaded, tmp_path):
    folder = shutil.copytree(folders("gpt2"), tmp_path / "gpt2")
    tokenizer = gpt2_tokenizer()
    tokenizer.add_special_tokens({"pad_token": "[PAD]"})
    tokenizer.save_pretrained(folder)
    texts = read_typed("a black cat sat on the mat\nShe ran.\n[PAD] it is")
    for one, other in zip(measured(load(folder), *texts), measured(loaded("gpt2"), *texts), strict=True):
        np.testing.assert_allclose(one.measures, other.measures, rtol=1e-5, atol=1e-6)


def with_header(change):
    def changed(content):
        (n_bytes,) = struct.unpack("<Q", content[:8])
        header, body = json.loads(content[8 : 8 + n_bytes]), content[8 + n_bytes :]
        change(header[next(name for name in header if name != "__metadata__")])
        written = json.dumps(header).encode()
        return struct.pack("<Q", len(written)) + written + body

    return changed


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content[: len(content) // 2],
        lambda content: content[:-1],
        lambda content: content + b"x",
        lambda content: content[:5],
        lambda content: b"",
        lambda content: struct.pack("<Q", 2**63) + content[8:],
        lambda content: struct.pack("<Q", 200_000_000) + content[8:],
        lambda content: struct.pack("<Q", 0) + content[8:],
        lambda content: struct.pack("<Q", 3) + content[8:],
        with_header(lambda entry: entry.update(data_offsets=[0, 10**12])),
        with_header(lambda entry: entry.update(shape=[10**9, 10**9])),
        with_header(lambda entry: entry.update(shape=[-1])),
        with_header(lambda entry: entry.update(dtype="X9")),
    ],
)
def test_weights_cut_short_or_with_a_header_that_lies_get_a_sentence(folder, change):
    path = folder / "model.safetensors"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(
        CheckpointError, match=r"^The weights of .* cannot be loaded \(.+\)\. Save the checkpoint again"
    ):
        load(folder)


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
@pytest.mark.parametrize("opened", ["[", '{"a":'])
def test_settings_nested_without_end_get_a_sentence(folder, name, opened):
    (folder / name).write_text(opened * 100_000)
    with pytest.raises(CheckpointError, match=r"cannot be (read|loaded) \(.+\)\."):
        load(folder)


def test_a_configuration_is_read_up_to_the_largest_size(folder):
    path = folder / "config.json"
    content = path.read_text().rstrip()
    path.write_text(content + " " * (MAX_JSON_BYTES - len(content)))
    assert find_checkpoint(str(folder)).n_layers == 2
    path.write_text(content + " " * (MAX_JSON_BYTES - len(content) + 1))
    with pytest.raises(CheckpointError, match=r"^config\.json of .* has 20,000,001 bytes and at most 20,000,000 are"):
        find_checkpoint(str(folder))


@pytest.mark.parametrize("changed", [{"num_hidden_layers": 10**9}, {"text_config": {"n_layer": MAX_LAYERS + 1}}])
def test_a_configuration_with_a_flood_of_layers_is_refused(folder, changed):
    edit_json(folder / "config.json", **changed)
    with pytest.raises(
        CheckpointError, match=r"names 1,00[0-9,]+ layers and at most 1,000 are loaded\. Correct the num"
    ):
        find_checkpoint(str(folder))


def outside(folder):
    elsewhere = folder.parent / "x.safetensors"
    (folder / "model.safetensors").rename(elsewhere)
    return dict.fromkeys(load_file(elsewhere), "../x.safetensors")


@pytest.mark.parametrize(
    ("places", "message"),
    [
        (outside, r"takes weights from '\.\./x\.safetensors', and only files model\*\.safetensors in its own folder"),
        (lambda _: {"a": "other.safetensors"}, r"takes weights from 'other\.safetensors'"),
        (lambda _: {"a": "model/../../x.safetensors"}, r"takes weights from 'model/\.\./"),
        (lambda _: {"a": 5}, r"takes weights from '5'"),
        (lambda _: None, r"takes weights from 'None'"),
    ],
)
def test_an_index_that_leads_elsewhere_is_refused(folder, places, message):
    (folder / "model-00001-of-00001.safetensors").write_bytes(b"")
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places(folder)}))
    (folder / "model.safetensors").unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match=message):
        find_checkpoint(str(folder))
    edit_json(folder / "config.json", transformers_weights="../y.safetensors")
    with pytest.raises(CheckpointError, match=r"takes weights from '\.\./y\.safetensors'"):
        find_checkpoint(str(folder))


def test_an_index_nested_without_end_gets_a_sentence(folder):
    (folder / "model.safetensors").rename(folder / "model-00001-of-00001.safetensors")
    (folder / "model.safetensors.index.json").write_text("[" * 100_000)
    with pytest.raises(
        CheckpointError, match=r"^model\.safetensors\.index\.json of .* cannot be read \(it is nested too deeply\)"
    ):
        find_checkpoint(str(folder))


def test_an_index_beside_whole_weights_is_not_asked(folder):
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "../x.safetensors"}}))
    assert load(folder).model.dtype == torch.float32
