"""Coreference: which heads point from a mention to what it refers to, against the nearest and the same word."""

from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Engine
from core.coreference import BASELINES, GROUPS, Candidates, CoreferenceScores
from core.errors import AnalysisError
from core.mentions import SMALLEST_WINDOW, WINDOW
from core.words import FromWord
from dashboard import controls, provenance, state
from dashboard import coreference_wording as wording
from dashboard import wording as shared_wording
from dashboard.components.head_map import Detail, head_map
from dashboard.downloads import drawing_downloads, table_downloads
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.coreference_table import antecedent_table
from dashboard.figures.head_map_svg import head_map_svg, round_bound
from dashboard.plain import plain, show_error
from dashboard.state import Choice, Head
from dashboard.views.coreference_pass import Coreference, Gold, HowAsked, coreference_of, gold_mentions
from dashboard.views.coreference_text import choices_in_a_text

CANDIDATES: Final[dict[str, Candidates]] = {wording.AMONG_MENTIONS: "mentions", wording.AMONG_WORDS: "words"}
FROM_WORDS: Final[dict[str, FromWord]] = {wording.FROM_MEAN: "mean", wording.FROM_FIRST: "first"}
LARGEST_WINDOW: Final = 8192


def show_section() -> None:
    """Draw the section."""
    st.markdown(wording.SEE)
    try:
        _coreference()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        st.markdown(wording.METHOD)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(shared_wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _coreference() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    if chosen.pass_settings(engine).kind not in ("self", "encoder"):
        st.info(wording.ONE_TEXT)
        return
    gold = gold_mentions()
    how = _settings()
    if gold is None:
        st.info(wording.WAIT)
        return
    found = coreference_of(inference, engine, chosen, gold, how)
    if found is None:
        return
    state.remember_off(chosen)
    scores = found.scores
    _, n_layers, n_heads = scores.accuracy.shape
    heads = state.chosen_heads(n_layers, n_heads, scores.best)
    facts = _facts(chosen, engine, gold, found, how)
    _say_read(gold, found)
    _headline(scores, chosen.criterion.alpha)
    _table(scores, heads, facts)
    _map(engine, scores, heads, chosen.criterion.alpha, facts)
    choices_in_a_text(found, heads, facts)
    state.put_in_link(heads)
    if heads:
        names = ", ".join(head_name(*head) for head in heads)
        st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")


def _settings() -> HowAsked:
    """What a mention may choose, which pieces of a word attend, and tokens of a window."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        among = _one_of(wording.CANDIDATES, tuple(CANDIDATES), "candidates", wording.CANDIDATES_HELP)
        pieces = _one_of(wording.FROM_WORD, tuple(FROM_WORDS), "mention from word", wording.FROM_WORD_HELP)
        window = st.number_input(
            wording.WINDOW,
            SMALLEST_WINDOW,
            LARGEST_WINDOW,
            WINDOW,
            key="window tokens",
            help=wording.WINDOW_HELP,
            bind="query-params",
            persist_state="session",
            width=180,
        )
    return HowAsked(candidates=CANDIDATES[among], from_word=FROM_WORDS[pieces], window=int(window))


def _one_of(label: str, options: tuple[str, ...], key: str, about: str | None = None) -> str:
    picked = st.segmented_control(
        label,
        options,
        default=options[0],
        key=key,
        help=about,
        required=True,
        bind="query-params",
        persist_state="session",
    )
    return str(picked)


def _facts(chosen: Choice, engine: Engine, gold: Gold, found: Coreference, how: HowAsked) -> dict[str, str]:
    """What a file says about where it comes from."""
    return {
        **provenance.engine_facts(chosen, engine),
        "mentions of": gold.name,
        "sha256": gold.sha256[:12],
        "texts": str(len(found.windows.texts)),
        "cases": str(found.scores.n_cases[0]),
        "candidates": "earlier mentions" if how.candidates == "mentions" else "all words",
        "from word": how.from_word,
        "window tokens": str(how.window),
        "alpha": f"{chosen.criterion.alpha:g}",
    }


def _say_read(gold: Gold, found: Coreference) -> None:
    texts, scores = found.windows.texts, found.scores
    n_mentions = sum(len(text.mentions) for text in texts)
    st.markdown(wording.read(plain(gold.name), len(texts), int(scores.n_cases[0]), n_mentions))
    if out := wording.left_out(found.windows.n_without, found.windows.n_apart, scores.n_unread):
        st.markdown(out)
    if said := wording.few(int(scores.n_cases[0]), is_example=gold.name == wording.EXAMPLE.capitalize()):
        st.info(said)


def _headline(scores: CoreferenceScores, alpha: float) -> None:
    held = scores.held_out
    n_cases, baselines = int(scores.n_cases[0]), scores.baselines[:, 0].tolist()
    if held is None:
        layer, head = scores.best
        chosen, accuracy, p = [scores.best], scores.accuracy[0, layer, head], scores.p_value[:, 0, layer, head]
    else:
        chosen, accuracy, p = list(held.chosen), held.accuracy[0], held.p_value[:, 0]
    sentences = [
        wording.headline([head_name(*one) for one in chosen], float(accuracy), n_cases, baselines, held is not None),
        wording.beats(dict(zip(BASELINES, p.tolist(), strict=True)), alpha),
    ]
    st.markdown(" ".join(sentences))


def _table(scores: CoreferenceScores, heads: list[Head], facts: dict[str, str]) -> None:
    st.subheader(wording.TABLE)
    table = antecedent_table(scores, heads[-1] if heads else None)
    columns = {
        group: st.column_config.NumberColumn(wording.column(group, int(n_cases)), format="%.1f")
        for group, n_cases in zip(GROUPS, scores.n_cases, strict=True)
    }
    st.dataframe(
        table.assign(**{group: 100 * table[group] for group in GROUPS}),
        hide_index=True,
        column_config={"who": st.column_config.TextColumn(wording.WHO, width="medium"), **columns},
        column_order=["who", *columns],
        key="antecedents",
        placeholder="–",
    )
    table_downloads("antecedents", table, facts)
    st.caption(wording.TABLE_PAPER)


def _map(engine: Engine, scores: CoreferenceScores, heads: list[Head], alpha: float, facts: dict[str, str]) -> None:
    """Accuracy of every head, less a baseline."""
    st.subheader(wording.MAP)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        with_cases = tuple(name for name, n_cases in zip(GROUPS, scores.n_cases, strict=True) if n_cases)
        group = _one_of(wording.MENTIONS, with_cases, "mentions group")
        against = _one_of(wording.AGAINST, wording.MINUS, "minus")
        if scores.best not in heads:
            st.button(
                f"{wording.TO_BEST}: {head_name(*scores.best)}",
                key="best antecedents",
                icon=":material/my_location:",
                on_click=state.push_heads,
                args=([scores.best],),
            )
    place, signed = GROUPS.index(group), against != wording.NOTHING
    accuracy = 100 * scores.accuracy[place]
    baseline = BASELINES.index(against) if signed else 0
    values = accuracy - 100 * scores.baselines[baseline, place] if signed else accuracy
    title = wording.map_title(group, against)
    drawn = {
        "values": values,
        "bound": round_bound(float(np.abs(values).max())),
        "signed": signed,
        "outlined": scores.p_value[baseline, place] < alpha if signed else None,
        "outline": wording.OUTLINE if signed else "",
        "low_label": wording.LOWER if signed else "",
        "high_label": wording.HIGHER if signed else "",
    }
    head_map(
        key="antecedent map",
        label=f"{title}, heads of {engine.files.name}",
        title=title,
        details=_details(scores, place),
        chosen=heads,
        reset=(engine.files.fingerprint, state.n_pushed()),
        on_change=state.choose_heads,
        **drawn,
    )
    drawing_downloads(
        "map of antecedents",
        lambda: head_map_svg(title=f"{title}, {engine.files.name}", caption=provenance.caption(facts), **drawn),
    )
    st.caption(wording.MAP_PAPER)


def _details(scores: CoreferenceScores, group: int) -> list[Detail]:
    shape = scores.accuracy.shape[1:]
    ends = zip(scores.low[group].tolist(), scores.high[group].tolist())
    return [
        ("right", [[f"{share:.1%}" for share in row] for row in scores.accuracy[group].tolist()]),
        ("interval", [[f"{low:.1%} to {high:.1%}" for low, high in zip(*rows)] for rows in ends]),
        *(
            (name, np.full(shape, f"{share:.1%}").tolist())
            for name, share in zip(BASELINES, scores.baselines[:, group].tolist(), strict=True)
        ),
        *((f"p against {name}", _p(scores.p_value[place, group])) for place, name in enumerate(BASELINES)),
        ("cases", np.full(shape, f"{scores.n_cases[group]:,}").tolist()),
    ]


def _p(values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    return [[f"{p:.2g}" for p in row] for row in values.tolist()]
