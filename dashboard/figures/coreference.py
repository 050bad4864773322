"""Heads and baselines on coreference as rows: Clark's table, and what one head chose for every mention."""

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.coreference.accuracy import (
    BASELINES,
    GROUPS,
    NO_CHOICE,
    Candidates,
    CoreferenceScores,
    MentionChoices,
)
from attention_sieve.core.coreference.mentions import MentionText
from attention_sieve.core.statistics.cases import KeyMatched

RANDOM: Final = "random mention"
DESIGN_EFFECT: Final = "design effect"
TIMES_OTHERS: Final = "times others"
FROM_EVERYWHERE: Final = "from everywhere"
OF_GROUPS: Final = ("", " low", " high", f" {DESIGN_EFFECT}")
"""Ends of the names of the columns of a group."""
UNKNOWN: Final = np.full(len(GROUPS), np.nan)
HELD_OUT: Final = "best head of one half, on the other"


def antecedent_table(scores: CoreferenceScores, chosen: tuple[int, int] | None) -> pd.DataFrame:
    """Accuracy at antecedent selection: by baselines, by the best head held out, and by single heads.

    Args:
        chosen: layer and head to show beside the best; None for none.

    Returns: one row each, with a column for each of GROUPS, and for heads the ends of the interval of each (`all low`,
        `all high`, ...) and its design effect (`all design effect`, ...); NaN in groups without cases. Of heads also,
        over all groups, `times others`: how many times as much attention antecedents get from mentions as from other
        words, and `from everywhere`: whether the head does not beat this control.
    Source: Clark et al. 2019, table 2.
    """
    baselines = [(RANDOM, scores.chance), *zip(BASELINES, scores.judgement.baselines, strict=True)]
    rows = [_row(name, shares) for name, shares in baselines]
    judged = scores.judgement
    if (held := judged.held_out) is not None:
        rows.append(
            _row(HELD_OUT, held.accuracy, held.low, held.high, held.design_effect) | _control(held.key_matched[0], ())
        )
    layer, head = scores.best
    heads = {scores.best: f"{head_name(layer, head)}, best on all texts"}
    if chosen is not None:
        heads.setdefault(chosen, f"{head_name(*chosen)}, chosen")
    rows += [
        _row(name, *(values[:, *at] for values in (judged.accuracy, judged.low, judged.high, judged.design_effect)))
        | _control(judged.key_matched[0], at)
        for at, name in heads.items()
    ]
    return pd.DataFrame(rows).astype({FROM_EVERYWHERE: "boolean"})


def _control(control: KeyMatched, head: tuple[int, ...]) -> dict[str, object]:
    return {TIMES_OTHERS: float(control.times[head]), FROM_EVERYWHERE: bool(control.from_everywhere[head])}


def _row(name: str, *values: Float[np.ndarray, " group"]) -> dict[str, object]:
    """Shares of the groups, and if they are known the ends of their intervals and design effects."""
    row: dict[str, object] = {"who": name}
    for of_what, by_group in zip_longest(OF_GROUPS, values, fillvalue=UNKNOWN):
        row |= {f"{group}{of_what}": value for group, value in zip(GROUPS, by_group.tolist(), strict=True)}
    return row


def choices_table(
    texts: Sequence[MentionText],
    choices: Sequence[MentionChoices],
    head: tuple[int, int],
    candidates: Candidates,
) -> pd.DataFrame:
    """What a head chose for every mention of some texts, one row each, in order.

    Columns: text (its name), mention (its number in the text, from 1), word (its head word), type, refers back to
    (numbers of its antecedents), chosen (number of the mention whose head word was chosen; none where it is of no
    mention), chosen word, right (none where there is no antecedent or the mention was not read).
    """
    rows = []
    for text, choice in zip(texts, choices, strict=True):
        shown, of_head = text.shown, choice.of(candidates)[head]
        numbers = {mention.head: number for number, mention in enumerate(text.mentions, start=1)}
        for index, mention in enumerate(text.mentions):
            word, antecedents = int(of_head[index]), text.antecedents[index]
            is_case = bool(antecedents) and bool(choice.is_read[index])
            rows.append(
                {
                    "text": text.name,
                    "mention": index + 1,
                    "word": shown[mention.head],
                    "type": mention.type,
                    "refers back to": ", ".join(str(before + 1) for before in antecedents),
                    "chosen": numbers.get(word),
                    "chosen word": None if word == NO_CHOICE else shown[word],
                    "right": word in [text.mentions[before].head for before in antecedents] if is_case else None,
                }
            )
    table = pd.DataFrame(rows)
    return table.astype({"chosen": "Int64", "right": "boolean"})
