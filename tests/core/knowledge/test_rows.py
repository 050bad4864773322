from collections import Counter
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from attention_sieve.core.knowledge.from_trees.rows import Candidate, at_most_of_a_unit, balanced_rows, most_classes
from attention_sieve.core.knowledge.task import PARTS, SHARES, split_units

CANDIDATES = st.lists(
    st.builds(
        Candidate,
        words=st.tuples(st.sampled_from("ab"), st.integers(0, 60).map(str)),
        label=st.sampled_from("xyz"),
        unit=st.integers(0, 12).map(str),
        stratum=st.sampled_from(("", "long")),
    ),
    max_size=120,
)


@given(CANDIDATES, st.integers(0, 5))
def test_rows_are_balanced_and_no_text_or_unit_is_in_two_parts(candidates, seed):
    rows = balanced_rows(candidates, 10_000, Random(seed))
    texts = [row.text.segments[0] for row in rows]
    assert len(set(texts)) == len(texts)
    first = {candidate.words: candidate for candidate in reversed(candidates)}
    candidate_of = {" ".join(words): candidate for words, candidate in first.items()}
    assert all(candidate_of[text].label == row.label for text, row in zip(texts, rows))
    parts_of = {(candidate_of[text].unit, row.part) for text, row in zip(texts, rows)}
    assert len(parts_of) == len({unit for unit, _ in parts_of})
    cells = Counter((row.part, candidate_of[text].stratum, row.label) for text, row in zip(texts, rows))
    labels = {candidate.label for candidate in first.values()}
    for part, stratum in {cell[:2] for cell in cells}:
        assert len({cells[part, stratum, label] for label in labels}) == 1


@given(CANDIDATES, st.integers(6, 60))
def test_no_more_rows_than_asked_for(candidates, most):
    assert len(balanced_rows(candidates, most, Random(0))) <= most


def test_single_units_are_divided_in_the_shares_in_each_cell():
    units = {f"{label}{row}": {(label, ""): 1} for label in "xy" for row in range(60)}
    part_of = split_units(units, Random(0))
    counts = Counter((unit[0], part) for unit, part in part_of.items())
    assert SHARES == (4, 1, 1)
    assert [counts["x", part] for part in PARTS] == [counts["y", part] for part in PARTS] == [40, 10, 10]


def test_units_of_different_sizes_fill_the_parts_evenly():
    units = {str(size): {("x", ""): size} for size in range(1, 41)}
    counts = Counter()
    for unit, part in split_units(units, Random(0)).items():
        counts[part] += int(unit)
    total = sum(range(1, 41))
    assert all(abs(counts[part] - share / 6 * total) <= 5 for part, share in zip(PARTS, SHARES))


def test_a_part_that_a_task_decided_is_kept_and_one_class_alone_gives_no_rows():
    rows = balanced_rows([Candidate((label,), label, "one", part="test") for label in "xy"], 100, Random(0))
    assert [row.part for row in rows] == ["test", "test"]
    assert balanced_rows([Candidate(("a",), "x", "one"), Candidate(("b",), "x", "two")], 100, Random(0)) == ()


def test_no_unit_has_more_than_its_share_of_a_class():
    candidates = [Candidate((str(row),), "x", "was" if row < 50 else str(row)) for row in range(100)]
    candidates += [Candidate((f"y{row}",), "y", "was") for row in range(10)]
    kept = Counter((one.label, one.unit) for one in at_most_of_a_unit(candidates, 0.1, Random(0)))
    assert kept["x", "was"] == 10
    assert kept["y", "was"] == 1
    assert sum(kept.values()) == 61


def test_most_classes_with_enough_rows_are_chosen():
    assert most_classes({("1", "2"): 5_000, ("1", "2", "3"): 2_000, ("2", "3"): 9_000}) == ("1", "2", "3")
    assert most_classes({("1", "2"): 1_000, ("1", "2", "3"): 900, ("2", "3"): 800}) == ("1", "2")
    assert most_classes({("1", "2"): 119, ("1", "2", "3"): 179}) == ()
    assert most_classes({}) == ()
