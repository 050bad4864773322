"""The pages, for the app, which draws them, and for the server, which knows their addresses before that."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from attention_sieve.dashboard.public import is_public

Group = Literal["Look", "Test", "Change", "Learn"]
"""What a page is for: the sections of the navigation."""


@dataclass(frozen=True)
class Page:
    group: Group
    address: str
    title: str
    icon: str
    folder: str
    """In `dashboard/views`, with the module `page`."""

    @property
    def name(self) -> str:
        """By which other pages and lessons find it."""
        return self.address.replace("-", "")


NO_PAGE: Final = "no page"
"""Query parameter of the first page: the name in an address that no page has."""
FINETUNE: Final = Page("Change", "fine-tune", "Fine-tune", ":material/model_training:", "finetune")
SECOND_RIDDLE: Final = Page("Learn", "second-riddle", "Second riddle", ":material/extension:", "second_riddle")
PAGES: Final = (
    Page("Look", "inspect", "Inspect", ":material/search:", "inspect"),
    Page("Look", "surface", "Where heads look", ":material/bar_chart:", "surface"),
    Page("Look", "grammar", "Grammar", ":material/account_tree:", "grammar"),
    Page("Look", "similarity", "Similar heads", ":material/scatter_plot:", "similarity"),
    Page("Test", "roles", "Roles", ":material/grid_view:", "roles"),
    Page("Test", "claims", "Claims", ":material/fact_check:", "claims"),
    Page("Test", "importance", "Importance", ":material/weight:", "importance"),
    Page("Test", "knowledge", "Knowledge", ":material/psychology:", "knowledge"),
    Page("Change", "compare", "Compare", ":material/compare:", "comparison"),
    FINETUNE,
    Page("Learn", "lessons", "Lessons", ":material/school:", "lessons"),
    SECOND_RIDDLE,
    Page("Learn", "laboratory", "Laboratory", ":material/science:", "laboratory"),
)
"""In the order of the navigation. Streamlit shows the first one at an address without a name."""


def offered_pages() -> tuple[Page, ...]:
    return tuple(page for page in PAGES if page is not FINETUNE or not is_public())


def offered_groups() -> dict[Group, list[Page]]:
    """The sections of the navigation, each with its pages."""
    pages = offered_pages()
    return {group: [page for page in pages if page.group == group] for group in get_args(Group)}
