"""Attention Sieve's dashboard: page set-up, navigation, and the sidebar that all pages share."""

from base64 import b64encode
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import streamlit as st

from attention_sieve.core.pauses import pausing
from attention_sieve.dashboard import controls, link, offers, state, wording
from attention_sieve.dashboard.components.copy_link import copy_link
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn, go_on_when_drawn
from attention_sieve.dashboard.figures.figure import import_altair
from attention_sieve.dashboard.files import downloads
from attention_sieve.dashboard.pages import PAGES, SECOND_RIDDLE, offered_groups

WEB = Path(__file__).with_name("web")
STYLES = ("page.css", "print.css")
# As a data URL, which Streamlit sends unchanged; it would encode a picture again on each run.
ICON = "data:image/png;base64," + b64encode(Path(__file__).with_name("icon.png").read_bytes()).decode()

st.set_page_config(page_title=wording.TITLE, page_icon=ICON, layout="wide", initial_sidebar_state="collapsed")
st.html(f"<style>{''.join((WEB / name).read_text('utf-8') for name in STYLES)}</style>")


def page_of(folder: str) -> Callable[[], None]:
    """A page, which is imported only when it is shown: a first visit does not wait for the others."""
    return lambda: import_module(f"attention_sieve.dashboard.views.{folder}.page").show()


groups = {
    group: {
        page.name: st.Page(
            page_of(page.folder),
            title=page.title,
            url_path=page.address,
            icon=page.icon,
            default=page is PAGES[0],
            # Who opens its address is told what it needs.
            visibility="hidden" if page is SECOND_RIDDLE and not offers.has_decoder() else "visible",
        )
        for page in pages
    }
    for group, pages in offered_groups().items()
}
st.session_state["pages"] = {
    name: page for pages in groups.values() for name, page in pages.items() if page.visibility == "visible"
}
page = st.navigation({group: list(pages.values()) for group, pages in groups.items()}, position="top")
st.session_state["page"] = page.url_path
link.begin(page.url_path)
if is_led := state.is_led():
    import_module("attention_sieve.dashboard.views.lessons.course").begin(page.url_path)
if first_screen_is_drawn():
    import_altair()  # for the charts below the first screen, which the browser can draw undisturbed before
above = st.container()
if is_led:
    with above:
        import_module("attention_sieve.dashboard.views.lessons.panel").elsewhere()
controls.sidebar()
downloads.begin_page()
with pausing(controls.give_way):
    page.run()
link.check_widgets()
link.show(above)
if first_screen_is_drawn():
    with above, st.container(key="page-tools", horizontal=True, width="content", gap="small"):
        import_module("attention_sieve.dashboard.run_list").button()
        copy_link(link.left_out())
    controls.load_behind()
else:
    go_on_when_drawn()
