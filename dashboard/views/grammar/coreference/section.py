"""Coreference: which heads attend from a mention to its antecedent, compared with two baselines."""

from pathlib import Path, PurePath
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.coreference.accuracy import BASELINES, GROUPS, CoreferenceScores
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS, CoreferenceFinding, CoreferenceSettings
from attention_sieve.core.coreference.mentions import SMALLEST_WINDOW, WINDOW, Windows
from attention_sieve.core.wording import documents_note, p_number
from attention_sieve.dashboard import samples, state
from attention_sieve.dashboard.figures.coreference import (
    DESIGN_EFFECT,
    FROM_EVERYWHERE,
    TIMES_OTHERS,
    antecedent_table,
)
from attention_sieve.dashboard.figures.head_map import Detail, HeadMap, intervals, percents, round_bound, texts_of
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import reads
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Inputs, analysed
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.descriptions.own_mentions import OwnMentions, remember
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.coreference import wording
from attention_sieve.dashboard.views.grammar.coreference.choices import (
    EXAMPLE,
    Gold,
    gold_mentions,
    windows_of,
)
from attention_sieve.dashboard.views.grammar.coreference.text import choices_in_a_text
from attention_sieve.dashboard.views.pickers import halves, one_of

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
CANDIDATES: Final = {name: candidates for candidates, name in wording.CANDIDATE_NAMES.items()}
MINUS: Final[dict[str, int | None]] = {
    BASELINES[1]: 1,
    BASELINES[0]: 0,
    wording.NOTHING: None,
}
"""Baseline that is subtracted from the accuracies in the map, if any."""
LARGEST_WINDOW: Final = 8192


def draw() -> None:
    visit = frame.without_corpus()
    if visit.settings.kind not in ("self", "encoder"):
        st.info(wording.ONE_TEXT)
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        is_example = one_of(wording.SOURCE, {wording.EXAMPLE: True, wording.UPLOAD: False}, key="mentions from")
        settings, window = _settings(visit.choice.criterion.alpha)
    gold = gold_mentions(is_example=is_example)
    if gold is None:
        return
    remember(None if gold.name == EXAMPLE else OwnMentions(gold.name, gold.sha256, window, settings))
    cut = windows_of(visit, gold, window)
    found = None if cut is None else analysed(visit, COREFERENCE_ANALYSIS, settings, _inputs(gold, cut, window))
    if cut is None or found is None:
        return
    finding, scores = found.finding, found.finding.scores
    _, n_layers, n_heads = scores.judgement.accuracy.shape
    heads = state.chosen_heads(n_layers, n_heads, scores.best)
    facts = found.facts() | {"cases": str(scores.judgement.n_cases[0])}
    _headline(finding)
    _warn_of_few_cases(gold, scores)
    left, right = halves()
    with left:
        _map(visit, scores, heads, facts)
    with right:
        choices_in_a_text(finding, heads, facts)
        frame.link_to_inspect(heads)
        _show_source(gold, cut, scores)
    state.put_in_link(heads)
    _table(scores, heads, facts)


def _inputs(gold: Gold, cut: Windows, window: int) -> Inputs:
    file = reads(f"mentions{PurePath(gold.name).suffix or samples.MENTIONS.suffix}", lambda: gold.content)
    name = wording.EXAMPLE if gold.name == EXAMPLE else gold.name
    return Inputs(
        read=cut.texts,
        facts={"corpus": name, "texts sha256": gold.sha256, "window": str(window)},
        options=["--texts", file, *([f"--window={window}"] if window != WINDOW else [])],
    )


def _settings(alpha: float) -> tuple[CoreferenceSettings, int]:
    candidates = one_of(wording.CANDIDATES, CANDIDATES, key="candidates", help=wording.CANDIDATES_HELP)
    from_word = one_of(
        shared_wording.FROM_WORD,
        shared_wording.FROM_WORDS,
        key="mention from word",
        help=shared_wording.FROM_WORD_HELP,
    )
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
    return CoreferenceSettings(candidates=candidates, from_word=from_word, alpha=alpha), int(window)


def _show_source(gold: Gold, cut: Windows, scores: CoreferenceScores) -> None:
    n_cases, n_mentions = int(scores.judgement.n_cases[0]), sum(len(text.mentions) for text in cut.texts)
    read = wording.read(plain(gold.name), len(cut.texts), n_cases, n_mentions)
    left_out = wording.left_out(cut.n_without, cut.n_apart, scores.n_unread)
    documents = documents_note(int(scores.n_documents[0]))
    st.caption(" ".join(sentence for sentence in (read, left_out, documents) if sentence))


def _warn_of_few_cases(gold: Gold, scores: CoreferenceScores) -> None:
    n_cases = int(scores.judgement.n_cases[0])
    if n_cases < wording.FEW_CASES:
        st.info(wording.few(n_cases, is_example=gold.name == EXAMPLE))


def _headline(finding: CoreferenceFinding) -> None:
    scores = finding.scores
    judged, held_out = scores.judgement, scores.judgement.held_out
    if held_out is None:
        layer, head = scores.best
        names = [head_name(layer, head)]
        accuracy, p_values = judged.accuracy[0, layer, head], judged.p_values[:, 0, layer, head]
    else:
        names = [head_name(layer, head) for layer, head in held_out.heads]
        accuracy, p_values = held_out.accuracy[0], held_out.p_values[:, 0]
    baselines = [float(scores.chance[0]), *judged.baselines[:, 0].tolist()]
    sentences = [
        wording.headline(names, float(accuracy), int(judged.n_cases[0]), baselines, is_held_out=held_out is not None),
    ]
    if np.isfinite(p_values).all():
        sentences.append(wording.beats(dict(zip(BASELINES, p_values.tolist(), strict=True)), finding.settings.alpha))
    if beside := shared_wording.beside(judged.best_key_matched, "The antecedents get"):
        sentences.append(beside)
    others = finding.among_others
    sentences.append(wording.among_others(others.candidates, others.best_accuracy))
    st.markdown(" ".join(sentences))


def _table(scores: CoreferenceScores, heads: list[Head], facts: dict[str, str]) -> None:
    st.markdown(f"**{wording.TABLE}**")
    table = antecedent_table(scores, heads[-1] if heads else None)
    columns = {
        group: st.column_config.NumberColumn(f"{group} ({int(n_cases):,})", format="%.1f%%")
        for group, n_cases in zip(GROUPS, scores.judgement.n_cases, strict=True)
    }
    effect = {
        f"{GROUPS[0]} {DESIGN_EFFECT}": st.column_config.NumberColumn(
            DESIGN_EFFECT, format="%.1f", help=wording.DESIGN_EFFECT_HELP
        )
    }
    control = {
        TIMES_OTHERS: st.column_config.NumberColumn(
            wording.TIMES_OTHERS, format="%.1f", help=wording.TIMES_OTHERS_HELP
        ),
        FROM_EVERYWHERE: st.column_config.CheckboxColumn(FROM_EVERYWHERE, help=wording.FROM_EVERYWHERE_HELP),
    }
    st.dataframe(
        table.assign(**{group: 100 * table[group] for group in GROUPS}),
        hide_index=True,
        column_config={"who": st.column_config.TextColumn(wording.WHO, width="medium"), **columns, **effect, **control},
        column_order=["who", *columns, *effect, *control],
        key="antecedents",
        placeholder="–",
    )
    table_downloads("antecedents", table, facts, paper=wording.TABLE_PAPER)


def _map(visit: Visit, scores: CoreferenceScores, heads: list[Head], facts: dict[str, str]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        groups = {
            name: index for index, (name, n) in enumerate(zip(GROUPS, scores.judgement.n_cases, strict=True)) if n
        }
        group = one_of(wording.MENTIONS, groups, key="mentions group")
        baseline = one_of(wording.AGAINST, MINUS, key="minus")
        if scores.best not in heads:
            st.button(
                f"{wording.TO_BEST}: {head_name(*scores.best)}",
                key="best antecedents",
                icon=":material/my_location:",
                on_click=state.push_heads,
                args=([scores.best],),
            )
    values, marked = 100 * scores.judgement.accuracy[group], None
    if baseline is not None:
        values = values - 100 * scores.judgement.baselines[baseline, group]
        marked = scores.judgement.p_values[baseline, group] < visit.choice.criterion.alpha
    is_difference, files = baseline is not None, visit.engine.files
    title = wording.map_title(GROUPS[group], None if baseline is None else BASELINES[baseline])
    picture = HeadMap(
        title=title,
        label=f"{title}, heads of {files.name}",
        values=values,
        bound=round_bound(float(np.abs(values).max())),
        signed=is_difference,
        low_label=wording.LOWER if is_difference else "",
        high_label=wording.HIGHER if is_difference else "",
        marked=marked,
        mark=wording.MARK if is_difference else "",
        details=_details(scores, group),
    )
    show_head_map(
        picture,
        head_selection("antecedent map", heads, (files.fingerprint, state.n_pushed())),
        file="map of antecedents",
        facts=facts,
        paper=wording.MAP_PAPER,
    )


def _details(scores: CoreferenceScores, group: int) -> list[Detail]:
    judged = scores.judgement
    shape = judged.accuracy.shape[1:]
    return [
        ("right", percents(judged.accuracy[group])),
        (
            "interval",
            intervals(judged.low[group], judged.high[group], ".1%", wording.NO_TEST),
        ),
        (wording.DESIGN_EFFECT, _number(judged.design_effect[group])),
        *(
            (name, np.full(shape, f"{share:.1%}").tolist())
            for name, share in zip(BASELINES, judged.baselines[:, group].tolist(), strict=True)
        ),
        *(
            (f"p against {name}", _p_numbers(judged.p_values[baseline, group]))
            for baseline, name in enumerate(BASELINES)
        ),
        ("cases", np.full(shape, f"{judged.n_cases[group]:,}").tolist()),
        *shared_wording.control_details(judged.key_matched[group]),
    ]


def _number(values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    return texts_of(lambda number: f"{number:.2g}" if np.isfinite(number) else wording.NO_TEST, values)


def _p_numbers(values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    return texts_of(lambda p: p_number(p) if np.isfinite(p) else wording.NO_TEST, values)
