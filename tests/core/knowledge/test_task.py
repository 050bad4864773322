import pytest

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample, check_task
from attention_sieve.core.texts.text import Text


def task_of(labels, *, is_regression=False):
    examples = [
        TaskExample(Text((f"{part} text {row}",)), label, part)
        for part, of_part in labels.items()
        for row, label in enumerate(of_part)
    ]
    return Task("colour", tuple(examples), is_regression, "by hand")


def halves(n_rows=100):
    return ["blue", "red"] * (n_rows // 2)


def in_all(labels):
    return dict.fromkeys(PARTS, labels)


def test_a_good_task_has_nothing_to_note():
    task = task_of(in_all(halves()))
    assert check_task(task) == ()
    assert check_task(task_of(in_all([str(n / 7) for n in range(100)]), is_regression=True)) == ()
    assert task.classes == ("blue", "red")
    assert task.count("test") == len(task.examples_in("test")) == 100
    assert task.class_counts("train") == (50, 50)


def test_numbers_as_classes_are_sorted_by_value():
    assert task_of({"train": ["10", "9", "11", "9"]}).classes == ("9", "10", "11")
    assert task_of({"train": ["10", "9", "x"]}).classes == ("10", "9", "x")


@pytest.mark.parametrize(
    ("labels", "is_regression", "message"),
    [
        ({"train": halves(), "validation": halves()}, False, "colour: the part test is empty. "),
        (dict(zip(PARTS, (halves(), ["red"], halves()))), False, "the part validation has 1 example and at least 10 "),
        (in_all(["red"] * 10), False, 'all 30 examples have the label "red". '),
        (in_all([str(n) for n in range(1001)]), False, "there are 1,001 classes and at most 1,000 "),
        ({"train": halves(), "dev": halves()}, False, 'there is no part "dev". Choose from train, validation, test.'),
        (in_all(["inf"] * 10), True, 'the label "inf" is not a finite number. '),
        (in_all(["2", "2.0"] * 5), True, "all labels of the part train are 2, "),
    ],
)
def test_what_no_probe_can_learn_is_said(labels, is_regression, message):
    with pytest.raises(AnalysisError, match=message):
        check_task(task_of(labels, is_regression=is_regression))


def test_the_first_of_many_unseen_classes_are_named():
    unseen = [f"shade {n}" for n in range(7)]
    with pytest.raises(AnalysisError, match=r'7 classes \("shade 0", .*"shade 4" and 2 more\) have no training'):
        check_task(task_of({"train": halves(), "validation": halves(), "test": [*halves(), *unseen]}))


def test_weak_results_are_noted():
    many = [str(n) for n in range(1000)]
    classes, absent = check_task(task_of({"train": many * 10, "validation": many, "test": many[1:]}))
    assert classes.startswith("There are 1,000 classes: ")
    assert absent == 'The class "0" has no example in the part test.'
    rare, chosen, few = check_task(task_of({"train": [*halves(), "pink"], "test": [*halves(20), "pink"]}))
    assert rare == 'The class "pink" has fewer than 10 training examples.'
    assert chosen.startswith("There is no validation part: heads and penalties are chosen by cross-validation")
    assert few.startswith("The test part has 21 examples: intervals are wide. ")
    task = task_of(in_all(halves()))
    again = TaskExample(task.examples[0].text, "red", "test")
    assert check_task(Task("colour", (*task.examples, again))) == (
        "1 text appears in more than one part, so a probe may memorise what it should predict. Remove them from all "
        "parts but one.",
    )
