"""Claims: do the heads that somebody names have the role that somebody says?"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.find import BUNDLED
from attention_sieve.core.claims.analysis import CLAIM_ANALYSIS
from attention_sieve.core.claims.claim import Claim, claim_of
from attention_sieve.core.claims.judge import ClaimFinding
from attention_sieve.core.claims.places import PROBE_TEXTS, Place
from attention_sieve.core.claims.probe import PROBES, ClaimSettings
from attention_sieve.core.claims.tables import claim_facts, claim_table, control_name, reasons
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.roles import BY_NAME, role_title
from attention_sieve.core.roles.uncertainty.anytime import odds
from attention_sieve.core.texts.text import decoded
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import controls, state
from attention_sieve.dashboard.figures.claim import claim_strips
from attention_sieve.dashboard.figures.head_scatter import head_scatter
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import command, reads
from attention_sieve.dashboard.plain import errors_shown
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, find, policy
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.claims import wording
from attention_sieve.dashboard.views.claims.elsewhere import LONG, elsewhere, inputs_of
from attention_sieve.dashboard.views.frame import Places, Visit
from attention_sieve.dashboard.views.pickers import from_list, toggle

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
CLAIM: Final = "claim"
"""Key and query parameter of what the reader writes."""
FILE: Final = "claim file"


def show() -> None:
    frame.page("Claims", wording.SEE, _claims, NOTES)


def _claims() -> None:
    visit, places = frame.without_corpus(), frame.places()
    example = wording.EXAMPLES.get(visit.engine.files.name, wording.ANY_EXAMPLE)
    with places.controls:
        otherwise = example if visit.engine.files.name == BUNDLED else ""  # of another, it may be long work
        written = controls.typed_texts("Claim", CLAIM, otherwise, height=80, help=wording.CLAIM_HELP)
        roles = {"as the claim says": None, **{role_title(name): name for name in (*BY_NAME, *state.written())}}
        role = from_list("Role", roles, key="claim role", help=wording.ROLE_HELP, width=240)
        with st.popover("Open scores", icon=":material/upload_file:"):
            st.file_uploader(
                "A .json file of scores by head; it replaces what the claim says.",
                type=["json"],
                key=FILE,
                on_change=_open,
                max_upload_size=1,
            )
        on_corpus = toggle("Test on the corpus", key="claim on corpus", help=wording.ON_CORPUS_HELP)
    if not written.strip():
        with places.finding, st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("A claim is, for example:", width="content")
            st.button(example, key="claim example", on_click=partial(st.session_state.update, {CLAIM: example}))
        return
    made = claim_of(written, role)
    visit.engine.files.check_heads(visit.settings.kind, made.heads)
    if not (is_probed := made.role in PROBES and not on_corpus):
        with_texts = frame.with_corpus(visit)
        if with_texts is None:
            return
        visit = with_texts
    # A table in which every row repeats a list of scores would be as large as the square of it.
    said = reads("scores.json", written.encode) if made.scores else " ".join(written.split())
    asked = [said, *([f"--role={role}"] if role else [])]
    _tested(visit, places, made, PROBE_TEXTS if is_probed else visit.choice.corpus, asked)


def _open() -> None:
    """Take an uploaded file in place of what is written; it is checked as if it were typed."""
    if (file := st.session_state[FILE]) is not None:
        with errors_shown():
            st.session_state[CLAIM] = decoded(file.getvalue())


def _tested(visit: Visit, places: Places, made: Claim, texts: str, asked: list[str]) -> None:
    """Test a claim on some texts, and say where else it holds; `asked` are the options that say it."""
    choice = visit.choice
    of_role = RoleSettings(replace(choice.score_settings, roles=(made.role,)), choice.criterion)
    settings = ClaimSettings(claim=made, role_settings=of_role)
    inputs = inputs_of(visit, settings, texts)
    with places.finding:
        corpus_finding = find(visit, CLAIM_ANALYSIS, settings, inputs, doing="Testing the claim")
        if corpus_finding is None:
            return
        ask_about_long_texts(corpus_finding.too_long)
    options = [*asked, *given_options(settings, ClaimSettings())]

    def facts(*also: str, too_long: TooLong) -> dict[str, str]:
        return {
            **provenance.engine_facts(choice, visit.engine),
            "corpus": texts,
            "corpus texts": str(len(corpus_finding.positions)),
            **claim_facts(corpus_finding.finding),
            **command("claim", choice, visit.engine, visit.texts, *options, *also, too_long=too_long),
        }

    _show(corpus_finding.finding, places, texts, facts(too_long=policy()))
    here = Place(checkpoint=visit.engine.files.name, texts=texts, finding=corpus_finding.finding)
    with places.sections, st.expander("Does it hold elsewhere?"):
        elsewhere(visit, here, settings, partial(facts, too_long=LONG))


def _show(finding: ClaimFinding, places: Places, texts: str, facts: Mapping[str, str]) -> None:
    claim = finding.claim
    with places.finding:
        frame.say_finding(wording.finding(finding), wording.summary(finding))
    with places.picture:
        chart("heads of the claim", claim_strips(finding), facts, large=True)
    n_layers, n_heads = finding.means.shape
    heads, named = state.chosen_heads(n_layers, n_heads, claim.heads[0]), list(claim.heads[: wording.MOST_NAMED])
    state.put_in_link(heads)
    with places.controls:
        frame.link_to_inspect(heads)
        if heads != named:
            choose = partial(state.push_heads, named)
            st.button("Choose the heads of the claim", key="choose claimed", on_click=choose, type="tertiary")
    with places.sections:
        table("claim", _shown(finding), facts, wording.columns(finding), number="%.2f", written=claim_table(finding))
        if finding.spearman is not None:
            with st.expander("Does the ranking agree?"):
                claimed = np.full(finding.means.shape, np.nan)
                claimed[tuple(np.transpose(claim.heads))] = claim.scores
                figure = head_scatter(claimed, finding.means, wording.ranking(finding, facts["checkpoint"]), heads)
                chart("claimed and measured scores", figure, facts, selects=True)
        with st.expander("On which texts is it tested, and what limits that?"):
            st.markdown(wording.tested_on(finding, texts))


def _shown(finding: ClaimFinding) -> pd.DataFrame:
    """The table of a claim as it is read; of many heads the highest scores first."""
    rows = claim_table(finding).assign(odds=list(map(odds, finding.evidence.tolist())))
    rows = rows.assign(fails=[reasons(finding, row) for row in rows.itertuples()])
    if len(rows) > wording.MOST_NAMED:
        rows = rows.sort_values("rank", ignore_index=True)
    rows = rows.assign(
        **{name: rows[name].round(2) + 0.0 for name in ("mean", "permuted", "positional", "compared")}
    )  # no -0.00
    shown = pd.DataFrame({"head": list(map(head_name, rows["layer"], rows["head"])), "verdict": rows["verdict"]})
    if rows["fails"].any():
        shown["fails"] = rows["fails"]
    if finding.claim.scores is not None:
        shown["claimed"] = rows["claimed"]
    shown["score"] = rows["mean"]
    shown["interval"] = list(map("{:z.2f} to {:z.2f}".format, rows["low"], rows["high"]))
    shown["odds"] = rows["odds"]
    shown["permuted keys"] = rows["permuted"]
    if finding.probed.fixed is not None:
        shown[control_name(finding)] = rows["positional"]
    elif np.isfinite(rows["positional"]).any():
        shown["joined"] = list(map("{:z.1f}".format, rows["compared"]))
        shown[control_name(finding)] = list(map("{:z.1f} (p {:.2g})".format, rows["positional"], rows["p_positional"]))
    shown["rank"] = [f"{rank:,} of {finding.n_heads:,}" for rank in rows["rank"]]
    return shown
