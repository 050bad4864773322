"""The components without Streamlit: one script, and the colours of the page."""

from dataclasses import replace

import pytest

from attention_sieve.dashboard.components import arcs, grid, venn
from attention_sieve.dashboard.standalone import script, theme_style


def test_one_script_holds_every_component_and_can_stand_in_a_page():
    joined = script([grid.SOURCE, arcs.SOURCE, venn.SOURCE])
    for name in ("role_grid", "arcs", "role_venn"):
        assert joined.count(f"\n{name}: {{") + joined.count(f",{name}: {{") == 1
    assert "export" not in {line.split(" ")[0] for line in joined.splitlines()}
    for ends_it in ("</script", "<!--"):
        assert ends_it not in joined.lower()


def test_a_script_without_one_default_export_is_refused():
    with pytest.raises(ValueError, match="The script of venn has 0 default exports, not one"):
        script([replace(venn.SOURCE, name="venn", js="function draw() {}")])


def test_the_page_has_the_colours_of_the_dashboard_light_and_dark():
    light, dark = theme_style().split("@media screen and (prefers-color-scheme: dark)")
    assert "--st-background-color: #ffffff;" in light
    assert "--st-secondary-background-color: #1b2127;" in dark
