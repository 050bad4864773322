"""The pages, for the app, which draws them, and for the server, which knows their addresses before that."""

from dataclasses import dataclass
from typing import Final

from attention_sieve.dashboard.public import is_public


@dataclass(frozen=True)
class Page:
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
FINETUNE: Final = Page("fine-tune", "Fine-tune", ":material/model_training:", "finetune")
PAGES: Final = (
    Page("inspect", "Inspect", ":material/search:", "inspect"),
    Page("roles", "Roles", ":material/grid_view:", "roles"),
    Page("claims", "Claims", ":material/fact_check:", "claims"),
    Page("surface", "Where heads look", ":material/bar_chart:", "surface"),
    Page("grammar", "Grammar", ":material/account_tree:", "grammar"),
    Page("similarity", "Similar heads", ":material/scatter_plot:", "similarity"),
    Page("importance", "Importance", ":material/weight:", "importance"),
    Page("knowledge", "Knowledge", ":material/psychology:", "knowledge"),
    Page("compare", "Compare", ":material/compare:", "comparison"),
    Page("lessons", "Lessons", ":material/school:", "lessons"),
    Page("laboratory", "Laboratory", ":material/science:", "laboratory"),
    FINETUNE,
)
"""In the order of the navigation. Streamlit shows the first one at an address without a name."""


def offered_pages() -> tuple[Page, ...]:
    return tuple(page for page in PAGES if page is not FINETUNE or not is_public())
