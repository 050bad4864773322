"""How large the program is: a bound that is raised has its reason in the commit that raises it."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = [
    path for room in ("attention_sieve/calls", "core", "cache", "dashboard") for path in (ROOT / room).rglob("*.py")
]
MOST_LINES, MOST_FILES = 97_743, 665
MOST_OF_A_PAGE = {"inspect": 388, "comparison": 244}
"""Lines of `page.py` where it is longer than USUAL_PAGE."""
USUAL_PAGE = 200


def n_lines(path):
    return len(path.read_text("utf-8").splitlines())


def test_the_product_grows_in_no_commit_that_does_not_say_why():
    assert sum(map(n_lines, FILES)) <= MOST_LINES
    assert len(FILES) <= MOST_FILES


@pytest.mark.parametrize(
    "page", sorted((ROOT / "dashboard" / "views").glob("*/page.py")), ids=lambda page: page.parent.name
)
def test_a_page_is_short(page):
    assert n_lines(page) <= MOST_OF_A_PAGE.get(page.parent.name, USUAL_PAGE)
