import resource
import time

import numpy as np
import pytest
from small_checkpoints import TOKENIZERS

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import NoTokens, TextError, TextTooLong
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids
from attention_sieve.core.texts.tokens import SPECIAL, as_decoder_input, tokenize

KINDS = ("bert", "roberta", "albert", "gpt2", "llama")
TRICKY = Text(
    (
        "  Don't feed the café's black-cat 🙂 twice: the cat, the CAT!",
        "Élan vital — naïve coffee ３ times “unbelievably”",
    )
)


def tokens_of(kind, *segments, max_tokens=500, **chosen):
    return tokenize(Text(segments), TOKENIZERS[kind](), max_tokens, **chosen)


def test_a_pair_under_wordpiece_worked_by_hand():
    text = tokens_of("bert", "Two unbelievable dogs", "eat it")
    expected = ("[CLS]", "two", "un", "##believ", "##able", "dog", "##s", "[SEP]", "eat", "it", "[SEP]")
    assert text.tokens == expected
    assert text.segments.tolist() == [-1, 0, 0, 0, 0, 0, 0, -1, 1, 1, -1]
    assert text.type_ids.tolist() == [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert text.words.tolist() == [-1, 0, 1, 1, 1, 2, 2, -1, 3, 4, -1]
    assert text.spans.tolist() == [
        [0, 0], [0, 3], [4, 6], [6, 12], [12, 16], [17, 20], [20, 21], [0, 0], [0, 3], [4, 6], [0, 0],
    ]  # fmt: skip
    assert np.flatnonzero(text.is_cls).tolist() == [0]
    assert np.flatnonzero(text.is_sep).tolist() == [7, 10]
    assert (text.n_cut, text.n_segments) == (0, 2)


def test_roberta_has_two_separators_between_segments():
    text = tokens_of("roberta", "a", "b")
    assert text.tokens == ("<s>", "a", "</s>", "</s>", "b", "</s>")
    assert np.flatnonzero(text.is_sep).tolist() == [2, 3, 5]
    assert text.type_ids.tolist() == [0] * 6


def test_an_end_mark_separates_where_no_other_mark_does():
    text = tokens_of("t5", "a cat", "a dog")
    assert [text.tokens[place] for place in np.flatnonzero(text.is_sep)] == ["</s>", "</s>"]
    assert np.flatnonzero(text.is_sep)[-1] == len(text.ids) - 1
    assert not text.is_cls.any()
    begun = as_decoder_input(tokens_of("t5", "a cat"), TOKENIZERS["t5"](), start_id=0)
    assert begun.tokens[0] == "<pad>"
    assert not begun.is_sep.any()


@pytest.mark.parametrize("kind", ["gpt2", "llama"])
def test_a_tokenizer_without_delimiters_marks_none(kind):
    text = tokens_of(kind, "a dog", "a cat")
    assert not text.is_cls.any()
    assert not text.is_sep.any()
    assert text.n_segments == 2


@pytest.mark.parametrize("kind", KINDS)
def test_spans_cover_every_visible_character_and_no_blank(kind):
    text = tokenize(TRICKY, TOKENIZERS[kind](), 500)
    for side, segment in enumerate(TRICKY.segments):
        covered = set()
        for start, end in text.spans[text.segments == side].tolist():
            assert segment[start:end] == segment[start:end].strip()
            covered |= set(range(start, end))
        assert (np.diff(text.spans[text.segments == side], axis=0) >= 0).all(), "they go forward"
        assert covered == {place for place, character in enumerate(segment) if not character.isspace()}
    assert not text.spans[text.segments == SPECIAL].any()


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_in_pieces_is_one_word(kind):
    text = tokens_of(kind, "the zyxzyx sat")
    own = [
        text.words[i] for i, (start, end) in enumerate(text.spans) if text.segments[i] == 0 and start >= 4 and end <= 10
    ]
    assert len(own) > 1
    assert len(set(own)) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("typed", ["[SEP]", "[CLS]", "</s>", "<s>", "<|endoftext|>", "[MASK]", "[PAD]"])
def test_names_of_special_tokens_that_are_typed_stay_text(kind, typed):
    tokenizer = TOKENIZERS[kind]()
    plain, with_name = tokens_of(kind, "a cat"), tokens_of(kind, f"a {typed} cat")
    n_special = sum(segment == SPECIAL for segment in plain.segments)
    assert (with_name.segments == SPECIAL).sum() == n_special
    assert with_name.is_cls.sum() == plain.is_cls.sum()
    assert with_name.is_sep.sum() == plain.is_sep.sum()
    inner = with_name.ids[with_name.segments == 0]
    assert not set(inner.tolist()) & set(tokenizer.all_special_ids) - {tokenizer.unk_token_id}


@pytest.mark.parametrize(
    ("kind", "segment", "shown"),
    [
        ("bert", "Café 🙂 dogs", ("[CLS]", "c", "##a", "##f", "##é", "[UNK]", "dog", "##s", "[SEP]")),
        ("roberta", "é the", ("<s>", "é", "é", "the", "</s>")),
        ("albert", "the zy", ("[CLS]", "the", "▁", "z", "y", "[SEP]")),
        ("albert", "zy", ("[CLS]", "▁", "z", "y", "[SEP]")),
    ],
)
def test_tokens_are_shown_readably(kind, segment, shown):
    assert tokens_of(kind, segment).tokens == shown


@pytest.mark.parametrize("kind", ["albert", "bert"])
def test_a_blank_that_sentencepiece_puts_before_a_segment_stands_on_no_character(kind):
    text = tokens_of(kind, "zy", "zy")
    for token, (start, end) in zip(text.tokens, text.spans):
        assert (end > start) == (token not in ("▁", "[CLS]", "[SEP]"))


@pytest.mark.parametrize("kind", ["bert", "albert"])
@pytest.mark.parametrize("empty", ["\u200b", "\x07", "\u00ad"])
def test_a_text_of_which_no_token_is_left_is_refused(kind, empty):
    if kind == "albert":
        empty = ""
    sentence = r"^Text 4 has a segment without any token of this checkpoint\. Give it at least one word\.$"
    with pytest.raises(NoTokens, match=sentence):
        tokens_of(kind, empty, position=3)


def test_a_text_too_long_is_refused_with_its_place_and_numbers():
    with pytest.raises(TextTooLong, match=r"^Text 3 has 1,203 tokens and this checkpoint takes 1,000\.") as error:
        tokens_of("bert", "cat " * 600, "dog " * 600, max_tokens=1000, position=2)
    assert (error.value.position, error.value.n_tokens, error.value.limit) == (2, 1203, 1000)
    assert tokens_of("bert", "cat " * 18, max_tokens=20).n_cut == 0
    with pytest.raises(TextTooLong):
        tokens_of("bert", "cat " * 19, max_tokens=20)


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_text_says_how_many_tokens_were_cut(kind):
    whole = tokens_of(kind, "the cat " * 9, "a dog ran")
    cut = tokens_of(kind, "the cat " * 9, "a dog ran", max_tokens=15, truncate=True)
    assert len(cut.ids) == 15
    assert cut.n_cut == len(whole.ids) - 15
    assert (cut.segments == 1).sum() == (whole.segments == 1).sum(), "the longest segment is cut first"
    assert cut.is_sep.sum() == whole.is_sep.sum()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segments", [TRICKY.segments[:1], TRICKY.segments])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("most", [None, 12])
def test_ids_are_those_of_the_call_of_transformers(kind, segments, side, most):
    tokenizer = TOKENIZERS[kind]()
    tokenizer.truncation_side = side
    text = tokenize(Text(segments), tokenizer, most or 500, truncate=True)
    called = tokenizer(
        *segments,
        split_special_tokens=True,
        return_token_type_ids=True,
        truncation="longest_first" if most else False,
        max_length=most,
    )
    assert text.ids.tolist() == called["input_ids"]
    assert text.type_ids.tolist() == called["token_type_ids"]


def cut_by_the_library(tokenizer, segments, most):
    """Ids, segment ids, segments, words and characters of a text that the tokenizer itself cuts."""
    backend = tokenizer.backend_tokenizer
    backend.enable_truncation(most, strategy="longest_first", direction=tokenizer.truncation_side)
    cut = backend.encode(*segments)
    backend.no_truncation()
    characters = [
        "" if side is None else segments[side][start:end].strip()
        for side, (start, end) in zip(cut.sequence_ids, cut.offsets)
    ]
    return cut.ids, cut.type_ids, [-1 if side is None else side for side in cut.sequence_ids], characters


@pytest.mark.parametrize("kind", ["bert", "albert", "roberta", "bart", "t5", "gpt2", "llama", "gemma2", "opt"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    "segments",
    [(TRICKY.segments[0],), TRICKY.segments, TRICKY.segments[::-1], ("a cat", "the  dog ran"), ("a cat", "the dog")],
)
def test_a_text_of_any_length_is_cut_as_by_the_tokenizer_itself(kind, side, segments):
    tokenizer = TOKENIZERS[kind]()
    tokenizer.truncation_side, text = side, Text(segments)
    n_tokens = len(tokenize(text, tokenizer, 500).ids)
    n_special = tokenizer.num_special_tokens_to_add(pair=len(segments) == 2)
    for most in range(n_special + len(segments), n_tokens + 2):
        found = tokenize(text, tokenizer, most, truncate=True)
        ids, type_ids, sides, characters = cut_by_the_library(tokenizer, segments, most)
        assert found.ids.tolist() == ids
        assert found.type_ids.tolist() == type_ids
        assert found.segments.tolist() == sides
        shown = ["" if at == SPECIAL else segments[at][start:end] for at, (start, end) in zip(sides, found.spans)]
        blank = [token in "▁ĠĊ" for token in found.tokens]
        assert [a for a, is_blank in zip(shown, blank) if not is_blank] == [
            b for b, is_blank in zip(characters, blank) if not is_blank
        ]
        assert found.n_cut == n_tokens - len(ids)


@pytest.mark.parametrize("kind", ["bert", "roberta", "t5", "llama"])
def test_a_long_pair_is_cut_in_time_and_memory_that_grow_with_it(kind):
    tokenizer, segment = TOKENIZERS[kind](), "the cat sat on a mat and the dogs ran " * 1_500
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    text = tokenize(Text((segment, segment)), tokenizer, 16, truncate=True)
    assert len(text.ids) == 16
    assert time.process_time() - began < 5
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 500_000  # kilobytes


def test_tokenizing_leaves_no_setting_behind():
    tokenizer = TOKENIZERS["bert"]()
    long = Text(("cat " * 30,))
    tokenize(long, tokenizer, 10, truncate=True)
    assert len(tokenize(long, tokenizer, 100).ids) == 32


def test_a_target_is_read_from_its_start_token_on_and_without_its_end_mark():
    text = tokens_of("roberta", "the dog sat")
    target = as_decoder_input(text, TOKENIZERS["roberta"](), start_id=1)
    assert (text.tokens[0], text.tokens[-1]) == ("<s>", "</s>")
    assert target.tokens == ("<pad>", *text.tokens[:-1])
    assert target.ids.tolist() == [1, *text.ids[:-1].tolist()]
    assert target.type_ids.tolist() == [0] * len(text.ids)
    assert target.segments.tolist() == [SPECIAL, *text.segments[:-1].tolist()]
    assert target.words.tolist() == [SPECIAL, *text.words[:-1].tolist()]
    assert target.spans.tolist() == [[0, 0], *text.spans[:-1].tolist()]
    assert np.flatnonzero(target.is_cls).tolist() == [1]
    assert not target.is_sep.any()
    assert (target.n_cut, target.n_segments) == (0, 1)


def test_a_start_token_that_is_a_separator_separates_nothing():
    """BART begins a target with the mark that ends one."""
    tokenizer = TOKENIZERS["roberta"]()
    text = tokens_of("roberta", "the dog sat")
    assert np.flatnonzero(as_decoder_input(text, tokenizer, tokenizer.sep_token_id).is_sep).tolist() == []
    assert np.flatnonzero(as_decoder_input(text, tokenizer, tokenizer.cls_token_id).is_cls).tolist() == [0, 1]


def test_only_marks_at_its_end_are_cut_off_a_target():
    text = tokens_of("llama", "the dog")
    begun = as_decoder_input(text, TOKENIZERS["llama"](), start_id=0)
    assert begun.tokens == ("<s>", *text.tokens)
    assert begun.segments.tolist() == [SPECIAL, *text.segments.tolist()]
    marked = tokens_of("bert", "the dog")  # a tokenizer that names no end mark
    assert as_decoder_input(marked, TOKENIZERS["bert"](), start_id=0).tokens == ("[PAD]", "[CLS]", "the", "dog")
    coded = TOKENIZERS["mbart"]()
    target = tokenize(Text(("the dog",)), coded, 40)
    assert all(name in target.tokens[-2:] for name in coded.all_special_tokens if name in ("</s>", "en_XX"))
    assert as_decoder_input(target, coded, start_id=0).segments[-1] == 0


def test_a_word_that_stands_for_the_end_mark_is_not_cut_off():
    """The last token is cut because the tokenizer put it there, not because of its number."""
    from dataclasses import replace

    tokenizer = TOKENIZERS["roberta"]()
    text = tokens_of("roberta", "the dog")
    own = replace(text, segments=np.where(np.arange(len(text.ids)) == len(text.ids) - 1, 0, text.segments))
    assert len(as_decoder_input(own, tokenizer, start_id=1).ids) == len(text.ids) + 1


def test_a_cut_target_still_says_how_much_was_cut():
    text = tokens_of("roberta", "the cat " * 9, max_tokens=8, truncate=True)
    target = as_decoder_input(text, TOKENIZERS["roberta"](), start_id=1)
    assert text.n_cut > 0
    assert (target.n_cut, len(target.ids)) == (text.n_cut, 8)


def test_a_mark_that_begins_and_ends_texts_separates_only_at_the_end(loaded):
    assert not tokenize(Text(("the dog sat.",)), loaded("opt").tokenizer, 40).is_sep[0]
    ended = tokenize(Text(("the dog sat.", "a cat ran.")), loaded("t5").tokenizer, 40)
    assert (ended.is_sep.sum(), ended.is_sep[-1]) == (2, True)


@pytest.mark.parametrize("kind", ["bert", "gpt2", "llama", "albert"])
def test_given_ids_are_the_tokens_and_show_what_they_stand_for(kind):
    tokenizer = TOKENIZERS[kind]()
    tokenized = tokenize(Text(("the cat sat on the mat",)), tokenizer, 500)
    given = GivenTokens(tuple(tokenized.ids.tolist()), (1, 2), (3, 5))
    source = text_of_ids(given)
    read = tokenize(source, tokenizer, 500)
    np.testing.assert_array_equal(read.ids, tokenized.ids)
    for name in ("segments", "is_cls", "is_sep"):
        np.testing.assert_array_equal(getattr(read, name), getattr(tokenized, name))
    assert [shown for shown in read.tokens if shown.strip("▁")] == [
        shown for shown in tokenized.tokens if shown.strip("▁")
    ]
    assert read.given == given
    shown = [source.segments[0][start:end] for start, end in read.spans[read.segments != SPECIAL]]
    assert list(map(int, shown)) == tokenized.ids[tokenized.segments != SPECIAL].tolist()
    with pytest.raises(TextTooLong, match="Text 3 has"):
        tokenize(source, tokenizer, len(given.ids) - 1, position=2)
    cut = tokenize(source, tokenizer, len(given.ids) - 1, truncate=True)
    assert (cut.ids.tolist(), cut.n_cut) == (list(given.ids[:-1]), 1)


def test_half_a_character_is_shown_by_its_name():
    tokenizer = TOKENIZERS["gpt2"]()
    ids = tokenizer("\N{GRINNING FACE}")["input_ids"]
    assert tokenize(text_of_ids(GivenTokens((ids[0],))), tokenizer, 9).tokens == tuple(
        tokenizer.convert_ids_to_tokens(ids[:1])
    )


def test_an_id_outside_of_the_vocabulary_is_refused_with_the_ids_there_are(loaded):
    checkpoint = loaded("gpt2")
    n_known = checkpoint.model.config.vocab_size
    last = prepare(checkpoint, text_of_ids(GivenTokens((0, n_known - 1))), PassSettings())
    assert last.queries.ids[-1] == n_known - 1
    with pytest.raises(
        TextError, match=rf"hold the id {n_known}, and the vocabulary of .* has the ids 0 to {n_known - 1}"
    ):
        prepare(checkpoint, text_of_ids(GivenTokens((0, n_known))), PassSettings())
