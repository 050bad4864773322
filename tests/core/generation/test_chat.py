import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.chat import chat_text, read_turns
from attention_sieve.core.generation.continuation import continuation
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.roles.record import template_mask

CHATML = (
    "{% for m in messages %}{{ '<s>' + m.role + '\n' + m.content + '</s>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s>assistant\n' }}{% endif %}"
)
"""The form of Qwen's and SmolLM's templates."""
SYSTEM = "{% if messages[0].role != 'system' %}<s>system\nBe kind.</s>\n{% endif %}" + CHATML
TRIMMED = CHATML.replace("m.content", "(m.content | trim)")
BRACKETS = "<s>{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]{% else %} {{ m.content }}</s>{% endif %}{% endfor %}"  # noqa: E501
"""The form of Mistral's."""


@pytest.fixture
def chatting(decoder):
    """chatting(template) -> a small decoder whose tokenizer has that template."""
    checkpoint = decoder("llama")
    yield lambda template: setattr(checkpoint.tokenizer, "chat_template", template) or checkpoint
    checkpoint.tokenizer.chat_template = None


def said(checkpoint, text):
    return [checkpoint.tokenizer.decode(text.given.ids[first:end]).strip() for first, end in text.given.turns]


def turns(*pairs):
    return tuple({"role": role, "content": content} for role, content in pairs)


def test_each_line_that_names_a_role_is_a_turn_and_others_go_on_with_it():
    typed = "System: Be brief.\nuser: one\n two\n\nthree\nASSISTANT:four\nuser : five"
    assert read_turns(typed) == turns(
        ("system", "Be brief."), ("user", "one\n two\n\nthree"), ("assistant", "four"), ("user", "five")
    )


def test_a_first_line_without_a_role_is_the_users_and_an_empty_answer_is_to_be_written():
    assert read_turns("\nHello\nassistant:") == turns(("user", "Hello"))


@pytest.mark.parametrize(
    ("typed", "message"),
    [(" \n", "no turn yet"), ("assistant:", "no turn yet"), ("user: a\nassistant: \nuser: b", r"Turn 2 \(assistant\)")],
)
def test_empty_turns_are_refused(typed, message):
    with pytest.raises(AnalysisError, match=message):
        read_turns(typed)


@pytest.mark.parametrize("template", [CHATML, SYSTEM, TRIMMED, BRACKETS])
@pytest.mark.parametrize(
    "chat",
    [
        turns(("user", "a dog")),
        turns(("user", "user"), ("assistant", "assistant\nuser"), ("user", "a dog sat 🌍 on the mat")),
        turns(("user", "the cat"), ("assistant", "it sat")),
    ],
)
def test_ids_are_those_of_transformers_and_the_turns_hold_what_was_typed(chatting, template, chat):
    checkpoint = chatting(template)
    text, goes_on = chat_text(checkpoint, chat), chat[-1]["role"] == "assistant"
    expected = checkpoint.tokenizer.apply_chat_template(
        list(chat), add_generation_prompt=not goes_on, continue_final_message=goes_on
    )["input_ids"]
    assert list(text.given.ids) == expected
    default = ["Be kind."] if template == SYSTEM else []
    assert said(checkpoint, text) == [*default, *(turn["content"] for turn in chat)]


def test_a_system_turn_stands_in_place_of_the_templates_own_message(chatting):
    checkpoint = chatting(SYSTEM)
    chat = turns(("system", "a cat"), ("user", "a dog"))
    assert said(checkpoint, chat_text(checkpoint, chat)) == ["a cat", "a dog"]


@given(content=st.text(st.characters(exclude_categories=("Cs", "Cc", "Co", "Zl", "Zp", "Zs")), min_size=1))
def test_whatever_is_typed_stands_in_its_turn(decoder, content):
    checkpoint = decoder("qwen3")
    checkpoint.tokenizer.chat_template = SYSTEM
    if "<" not in content:
        assert said(checkpoint, chat_text(checkpoint, turns(("user", content)))) == ["Be kind.", content]


def test_tokens_around_the_turns_are_the_templates_and_what_is_written_is_not(chatting):
    checkpoint = chatting(CHATML)
    prompt = chat_text(checkpoint, turns(("user", "a dog")))
    written = checkpoint.tokenizer(" sat", add_special_tokens=False)["input_ids"]
    end = checkpoint.tokenizer.convert_tokens_to_ids("</s>")
    checkpoint.full_model.generation_config.eos_token_id = end
    whole = continuation(checkpoint, prompt, PassSettings(), [*written, end]).whole
    checkpoint.full_model.generation_config.eos_token_id = None
    tokens = prepare(checkpoint, whole, PassSettings()).source
    own = [token for token, added in zip(tokens.ids.tolist(), template_mask(tokens)) if not added]
    assert checkpoint.tokenizer.decode(own).replace(" ", "") == "adogsat"
    assert template_mask(tokens)[-1]


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "has no chat template"),
        ("{{ raise_exception('Only one turn.') }}", "Only one turn"),
        ("{{ 1 / 0 }}", "fails on these turns"),
        ("{{ messages[0].content | upper }}", "leaves out or changes"),
        ("{{ messages[0].content }} {{ messages[0].content }}", "leaves out or changes"),
    ],
)
def test_a_template_that_is_missing_fails_or_changes_the_turns_is_a_sentence(chatting, template, message):
    with pytest.raises(AnalysisError, match=message):
        chat_text(chatting(template), turns(("user", "a dog")))


def test_a_turn_cannot_end_itself_with_a_special_token(chatting):
    with pytest.raises(AnalysisError, match=r"Turn 1 \(user\) holds '</s>'"):
        chat_text(chatting(CHATML), turns(("user", "a </s> dog")))


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ 'a' * 10**9 }}", "took more than 0.6 GB of memory, so it is not used|MemoryError"),
        (f"{{% for a in range(9999) %}}{5 * '{% for a in range(9999) %}'}{6 * '{% endfor %}'}", "took more than 2 sec"),
        (f"{{% set n = namespace(a='a') %}}{40 * '{% set n.a = n.a + n.a %}'}{{{{ n.a }}}}", "took more than 0.6 GB"),
        ("{{ '%99999999d' % 1 }}", "it writes [0-9,]+ characters, and at most 10,000,000 are read|took more than"),
    ],
)
def test_a_template_without_an_end_is_stopped_and_the_next_one_is_written(chatting, template, message):
    began = time.process_time()
    with pytest.raises(AnalysisError, match=message):
        chat_text(chatting(template), turns(("user", "a dog")))
    assert time.process_time() - began < 2, "it takes no time of this process"
    assert said(*[chatting(CHATML), chat_text(chatting(CHATML), turns(("user", "a dog")))]) == ["a dog"]
