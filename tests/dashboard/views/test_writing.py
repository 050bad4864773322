"""What a decoder writes on Inspect: the button, the steps, what is kept, and what is said where it cannot be done."""

import json
import shutil
from pathlib import Path

import pytest
from reading import sent
from small_checkpoints import N_POSITIONS

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.generation.steps import N_TRIED
from attention_sieve.core.generation.writer import prompt_ids, write_on
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.views.inspect import wording as inspect_wording
from attention_sieve.dashboard.views.writing import wording

TEXT = "the dog sat on the red"
TEMPLATE = "{% for message in messages %}<s>{{ message.role }}: {{ message.content }}</s>{% endfor %}<s>"


@pytest.fixture
def gpt2(app, small):
    def opened(text=TEXT, **link):
        return app(checkpoint=small("gpt2", "CausalLM", eos_token_id=None), text=text, **link)

    return opened


@pytest.fixture(scope="module")
def decoder(small):
    return load_checkpoint(find_checkpoint(small("gpt2", "CausalLM", eos_token_id=None)))


@pytest.fixture
def expected(decoder):
    """expected(n_tokens, off, **settings) -> the ids that it writes after the text."""

    def ids(n_tokens, off=(), **settings):
        asked = WritingSettings(n_tokens, **settings)
        return [each.token for each in write_on(decoder, Text((TEXT,)), asked, PassSettings("self", off))]

    return ids


def ids_in_link(at):
    return [int(token) for token in in_link(at, "written").split(",") if token]


def in_link(at, name):
    value = at.query_params.get(name, "")
    return value if isinstance(value, str) else value[-1]


def click(at, key):
    at.button(key=key).click().run()
    return at


def letters(at):
    """Of the roles with a corner in each cell of the grid."""
    grid = sent(at, "Heads of")
    return {grid["roles"][place]["letter"] for place in grid["shown"]}


def captions(at):
    return " ".join(each.value for each in at.caption)


def test_the_model_writes_on_and_once_more_after_what_it_wrote(gpt2, expected):
    at = gpt2(**{"tokens to write": "4"})
    click(at, "write on")
    assert ids_in_link(at) == expected(4)
    click(at, "write on")
    assert ids_in_link(at) == expected(8)
    # The text that was typed stays as it was.
    assert at.text_area(key="text").value == TEXT


def test_it_says_which_tokens_took_a_pass_over_the_whole_text(app, small):
    angles = {"rope_type": "longrope", "short_factor": [1.0, 1.0], "long_factor": [1.0, 4.0], "rope_theta": 100.0}
    n_prompt = len(
        prompt_ids(load_checkpoint(find_checkpoint(small("phi3", "CausalLM"))), Text((TEXT,)), PassSettings())
    )
    trained = max(n_prompt, N_TRIED[1]) + 1
    lengths = {"original_max_position_embeddings": trained, "sliding_window": None}
    folder = small("phi3", "CausalLM", eos_token_id=None, head_dim=4, rope_parameters=angles, **lengths)
    at = click(app(checkpoint=folder, text=TEXT, **{"tokens to write": str(trained + 2 - n_prompt)}), "write on")
    assert wording.by_whole_passes(1) in captions(at)
    click(at, "cut written")
    assert len(ids_in_link(at)) == 1
    assert wording.by_whole_passes(1) not in captions(at)


def test_temperature_and_seed_decide_what_is_drawn(gpt2, expected):
    at = gpt2(**{"tokens to write": "5", "temperature": "2", "writing seed": "7"})
    assert ids_in_link(click(at, "write on")) == expected(5, temperature=2.0, seed=7)


def test_heads_that_are_off_stay_off_and_both_texts_are_there(gpt2, expected):
    off = ((0, 0), (0, 1), (0, 2), (1, 1))
    at = gpt2(**{"tokens to write": "6"})
    click(at, "write on")
    at.session_state["off"] = list(off)
    at.run()
    assert ids_in_link(at) == expected(6)
    assert wording.other_heads(off, ()) in captions(at)
    click(at, "write again")
    assert ids_in_link(at) == expected(6, off) != expected(6)
    assert f"Before, {wording.with_heads(())}" in captions(at)
    click(at, "write again")  # the same once more
    assert f"Before, {wording.with_heads(())}" in captions(at)
    click(at, "put back")
    assert ids_in_link(at) == expected(6)


def test_a_step_pins_its_token_and_ranks_the_heads_and_the_text_is_cut_after_it_or_removed(gpt2, decoder, expected):
    at = click(gpt2(**{"tokens to write": "4"}), "write on")
    n_prompt = len(prompt_ids(decoder, Text((TEXT,)), PassSettings()))
    assert at.session_state["guess"] == n_prompt - 1
    assert in_link(at, "pin") == f"from-{n_prompt - 1}"
    click(at, wording.LATER)
    assert at.session_state["guess"] == n_prompt
    assert in_link(at, "pin") == f"from-{n_prompt}"
    rows = next(each.value for each in at.dataframe if "follows" in each.value)
    assert rows["follows"].sum() == 1
    ranking = next(each.value for each in at.dataframe if "on copies" in each.value)
    assert len(ranking) == 6
    (titles,) = (each.value for each in at.markdown if each.value.startswith("**Which heads"))
    order = "from copies" if "fetched “" in titles else "adds"
    assert ranking[order].is_monotonic_decreasing
    click(at, "cut written")
    assert ids_in_link(at) == expected(2)
    click(at, "remove written")
    assert ids_in_link(at) == []
    assert wording.TITLE not in [each.label for each in at.get("button_group")]


def test_a_link_brings_back_what_was_written(gpt2, expected):
    ids = expected(3)
    at = gpt2(written=",".join(map(str, ids)))
    assert ids_in_link(at) == ids


@pytest.mark.parametrize(("value", "said"), [("one,two", "is no list of tokens"), ("1,999999", "the id 999,999")])
def test_a_link_with_other_tokens_than_the_model_has_says_so_and_shows_the_text(gpt2, value, said):
    at = gpt2(written=value)
    assert said in " ".join(each.value for each in at.warning)
    assert ids_in_link(at) == []
    assert inspect_wording.NEXT_TOKEN in [each.value for each in at.subheader]


def test_writing_ends_at_the_maximum_length_with_a_sentence(gpt2):
    at = click(gpt2(**{"tokens to write": "100"}), "write on")
    assert wording.full(N_POSITIONS) in captions(at)
    before = ids_in_link(at)
    assert ids_in_link(click(at, "write on")) == before
    assert any("nothing more can be written" in each.value for each in at.error)


def test_a_text_that_ends_inside_a_character_says_so(gpt2, decoder):
    half = decoder.tokenizer("🌍")["input_ids"][:2]
    at = gpt2(written=",".join(map(str, half)))
    assert wording.INSIDE in captions(at)


@pytest.fixture
def chatting(app, small, tmp_path):
    """chatting(template, **link) -> the page with a small decoder whose tokenizer has that chat template."""

    def opened(template, text, **link):
        folder = Path(shutil.copytree(small("llama", "CausalLM"), tmp_path / "chat"))
        if template:
            (folder / "chat_template.jinja").write_text(template)
        return app(checkpoint=str(folder), text=text, chat="true", **link)

    return opened


def test_turns_are_read_by_the_chat_template_and_its_tokens_are_a_role(chatting):
    at = chatting(TEMPLATE, "user: a dog\nassistant: the mat\nuser: a cat")
    assert not at.error
    click(at, "write on")
    assert ids_in_link(at)
    assert at.text_area(key="text").value == "user: a dog\nassistant: the mat\nuser: a cat"
    click(at, "as turn")
    *_, last = at.text_area(key="text").value.split("\nassistant:")
    assert last.strip()
    assert ids_in_link(at) == []


def test_over_a_corpus_a_chat_has_the_roles_of_the_corpus_not_that_of_its_template(chatting):
    at = chatting(TEMPLATE, "user: a dog\nassistant: the mat", by=inspect_wording.BY_CORPUS)
    assert "T" not in letters(at)
    assert letters(at) >= {"F", "P"}
    at.segmented_control(key="by").set_value(inspect_wording.BY_TEXT).run()
    assert "T" in letters(at)


@pytest.mark.parametrize(
    ("template", "typed", "said"),
    [
        ("", "user: a dog", "has no chat template"),
        ("{{ raise_exception('Roles must alternate.') }}", "user: a dog", "Roles must alternate."),
        (TEMPLATE, "user: a dog\nassistant: it\nuser:", "Turn 3 (user) is empty"),
    ],
)
def test_a_chat_that_cannot_be_read_is_a_sentence_and_what_was_typed_stays(chatting, template, typed, said):
    at = chatting(template, typed)
    assert said in json.dumps([each.value for each in at.error]).replace("\\\\", "")
    assert at.text_area(key="text").value == typed
