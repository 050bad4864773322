"""Attention Sieve's dashboard: page set-up, navigation, and the sidebar that all pages share."""

import sys
from pathlib import Path

import streamlit as st
from PIL import Image

# `streamlit run` puts this file's folder on the path, not the project's.
if (root := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.insert(0, root)

from dashboard import controls, wording
from dashboard.figures.appearance import icon
from dashboard.views import compare, finetune, inspect, parsing, roles, similar, surface

st.set_page_config(page_title=wording.TITLE, page_icon=Image.fromarray(icon()), layout="wide")
st.html(Path(__file__).with_name("page.css"))
pages = {
    "inspect": st.Page(inspect.show, title="Inspect", url_path="inspect", icon=":material/search:", default=True),
    "roles": st.Page(roles.show, title="Roles", url_path="roles", icon=":material/grid_view:"),
    "surface": st.Page(surface.show, title="Surface", url_path="surface", icon=":material/bar_chart:"),
    "parsing": st.Page(parsing.show, title="Heads as parsers", url_path="parsing", icon=":material/account_tree:"),
    "similar": st.Page(similar.show, title="Similar heads", url_path="similar", icon=":material/scatter_plot:"),
    "compare": st.Page(compare.show, title="Compare", url_path="compare", icon=":material/compare:"),
    "finetune": st.Page(finetune.show, title="Fine-tune", url_path="fine-tune", icon=":material/model_training:"),
}
st.session_state["pages"] = pages
page = st.navigation(list(pages.values()))
controls.sidebar()
page.run()
controls.load_behind()
