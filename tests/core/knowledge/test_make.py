import pytest
from made_trees import corpus

from attention_sieve.core.knowledge.from_trees.make import DEFINITIONS, make_tasks
from attention_sieve.core.knowledge.task import PARTS, check_task


@pytest.fixture(scope="module")
def made():
    return {one.name: one for one in make_tasks(corpus(), "by hand")}


def test_every_task_is_made_or_left_out_with_a_reason(made):
    assert tuple(made) == tuple(define.__name__ for define in DEFINITIONS)
    assert {name for name, one in made.items() if one.task} == {"bigram_shift", "tense", "subject_number"}
    assert made["length"].left_out == (
        "length is left out: 0 balanced rows were found and at least 300 are needed. Give more texts."
    )
    assert made["tense"].left_out is None
    assert made["tense"].definition.startswith("Whether the root of the tree is a verb in the past tense")


def test_a_made_task_can_be_probed_and_says_where_it_comes_from(made):
    task = made["tense"].task
    assert [task.count(part) for part in PARTS] == [266, 68, 66]
    assert len(check_task(task)) == 1  # of the few rows to test on
    assert task.source == "by hand; 400 sentences of 5 to 28 words, split into parts by the key word; seed 0"
    assert "split into parts by document;" in made["bigram_shift"].task.source


def test_documents_are_in_one_part(made):
    parts_of = {}
    for one in made["bigram_shift"].task.examples:
        row = int(one.text.segments[0].split()[0].removeprefix("dog"))
        parts_of.setdefault(row // 4, set()).add(one.part)
    assert all(len(parts) == 1 for parts in parts_of.values())


def test_the_same_seed_makes_the_same_tasks(made):
    assert {one.name: one for one in make_tasks(corpus(), "by hand")} == made
    other = {one.name: one for one in make_tasks(corpus(), "by hand", seed=1)}
    assert other["bigram_shift"].task.examples != made["bigram_shift"].task.examples


def test_without_sentences_every_task_is_left_out():
    assert all(one.left_out for one in make_tasks([], "nothing"))
    assert all(one.left_out for one in make_tasks(corpus(1), "one"))
