"""The commands `python -m core ablate` and `importance`: how much each head matters for a metric."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.commands import TABLES, check_output, write_table
from core.errors import AnalysisError, quoted
from core.importance.agreement import Agreement, agreements
from core.importance.cheap import allowed_measures, ways_to_measures
from core.importance.effects import CORPORA, Draws, Effects, KeptAlone, effects, halves, kept_alone
from core.importance.material import (
    Material,
    ablation_outcomes,
    add_metric_options,
    material_facts,
    outputs_of_heads,
    read_material,
    results_of,
)
from core.importance.measures import ABLATION, Measure, damage
from core.importance.per_text import RULES, Rule
from core.importance.question import REPLACEMENTS, mean_outputs
from core.importance.verdicts import NEEDS, RESAMPLES, verdict_facts, without_verdict
from core.passes.question import Question

FEWEST_RESAMPLES: Final = 100
MOST_RESAMPLES: Final = 100_000


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    parser = commands.add_parser("ablate", help="take out each head in turn", description=f"{ablate.__doc__} {NEEDS}")
    add_metric_options(parser)
    _add_ablation_options(parser, RESAMPLES, "resamples of the texts, and sign flips; no p is below 2 / (N + 1)")
    parser.add_argument("--correction", default="bh", choices=("bh", "holm", "none"), help="of p over all heads")
    parser.add_argument(
        "--keep-one",
        type=Path,
        help="second file to write: each layer with its best head alone, chosen on one half of the texts and judged on "
        "the other: layer, even_head, odd_head (chosen on every second text from the first or second on), full, "
        "without, delta, low, high, p, p_adjusted (over the layers)",
    )
    parser.set_defaults(run=ablate)
    parser = commands.add_parser(
        "importance", help="measure how much each head matters", description=importance.__doc__
    )
    add_metric_options(parser)
    _add_ablation_options(parser, CORPORA, "resampled corpora, for intervals of correlations")
    parser.add_argument("--no-ablation", action="store_true", help="leave out ablation, which takes longest")
    parser.add_argument(
        "--normalise", action="store_true", help="divide the gradient measures of each layer by their Euclidean norm"
    )
    parser.add_argument("--rule", default=RULES[0], choices=RULES, help="how relevance is propagated")
    parser.add_argument(
        "--agreement",
        type=Path,
        help="second file to write, Spearman's correlation of each measure with ablation: measure, layer (none: all "
        "heads), spearman, low, high (95%% interval, by bootstrap over texts)",
    )
    parser.set_defaults(run=importance)


def _add_ablation_options(parser: argparse.ArgumentParser, resamples: int, what: str) -> None:
    parser.add_argument("--replace", default="zero", choices=REPLACEMENTS, help="what stands in for the head's output")
    parser.add_argument(
        "--resamples", type=_resamples, default=resamples, metavar="N", help=f"{what}; default: {resamples:,}"
    )
    parser.add_argument("--output", required=True, type=Path, help="file to write: " + " or ".join(TABLES))


def _resamples(text: str) -> int:
    """Parse the number of resamples."""
    if not text.isascii() or not text.isdigit() or not FEWEST_RESAMPLES <= int(text) <= MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is not a number of resamples; write one from {FEWEST_RESAMPLES} to {MOST_RESAMPLES}"
        )
    return int(text)


def ablate(arguments: argparse.Namespace) -> None:
    """Take out each head in turn and write one row per head: full (metric with all heads on; 0 for output), without
    (without this head), delta (without - full), low and high (95% interval of delta), p (two-sided, of "no change": the
    larger one of sign flips and of the bootstrap-t over texts, or over documents where these are known), p_adjusted
    (corrected over all heads). Where there are too few texts for an interval and p, standard error says so. A larger
    output or loss is worse, a larger accuracy, matthews, f1 or pearson better. Output cannot fall below 0, so there p
    only says that a head does anything. A masked language model is asked for 15% of each text's tokens, the same ones
    whenever the text is; other language models for every token after the first.
    """
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.keep_one:
        check_output(arguments.keep_one, TABLES, [arguments.texts, arguments.output])
    material = read_material(arguments)
    if arguments.keep_one:
        halves(material.documents)  # too few texts are refused before the work is done
    means = mean_outputs(outputs_of_heads(material)) if arguments.replace == "mean" else None
    documents, correction, resamples = material.documents, arguments.correction, arguments.resamples
    facts = material_facts(arguments, material) | {"replaced by": arguments.replace, "correction": arguments.correction}
    outcomes = ablation_outcomes(material, means=means)
    of_heads = effects(outcomes, material.score, documents, correction, resamples)
    tested = verdict_facts(of_heads.delta, of_heads.p, documents, resamples)
    write_table(arguments.output, effects_table(of_heads), facts | tested)
    if note := without_verdict(of_heads.delta, of_heads.p, documents):
        print(note, file=sys.stderr)
    if arguments.keep_one:
        alone = ablation_outcomes(material, alone=True, means=means)
        kept = kept_alone(alone, material.score, documents, correction, resamples)
        tested = verdict_facts(kept.delta, kept.p, documents, resamples)
        write_table(arguments.keep_one, kept_table(kept), facts | tested)


def importance(arguments: argparse.Namespace) -> None:
    """Write one row per measure, layer and head: measure, layer, head, value; a larger value is more important.
    Ablation: how much worse the metric is without the head. Gradient per token, text, batch: the absolute product of
    output and gradient. Attribution: the estimated rise of the loss without the head. Wanda-sp, flap: from outputs and
    weights. Confidence: the largest weight of a query. Relevance: share of the layer in the prediction. Measures that a
    checkpoint does not allow are left out and named on standard error. Prints Spearman's correlation with ablation, and
    how much of what relevance distributes arrives at the tokens.
    """
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.agreement:
        check_output(arguments.agreement, TABLES, [arguments.texts, arguments.output])
    if arguments.agreement and arguments.no_ablation:
        raise AnalysisError("Agreement is that with ablation. Leave out --no-ablation, or --agreement.")
    material = read_material(arguments)
    measures = cheap_measures(material, arguments.normalise, arguments.rule)
    facts = material_facts(arguments, material) | {"replaced by": arguments.replace, "relevance rule": arguments.rule}
    if not arguments.no_ablation:
        means = mean_outputs(outputs_of_heads(material)) if arguments.replace == "mean" else None
        ablation = damage(ablation_outcomes(material, means=means), material.score)
        correlations = agreements(measures, ablation, Draws(material.documents, arguments.resamples))
        _print_agreements(correlations)
        if arguments.agreement:
            write_table(arguments.agreement, agreement_table(correlations), facts)
        measures = [ablation, *measures]
    for conserved in (measure.conserved for measure in measures if measure.conserved is not None):
        print(f"Of what relevance distributes, {np.median(conserved):.1%} arrives at the tokens (median over texts).")
    write_table(arguments.output, measures_table(measures, len(material.prepared)), facts)


def cheap_measures(material: Material, normalised: bool, rule: Rule) -> list[Measure]:
    """All measures except ablation that the checkpoint supports; the others are named on standard error."""

    def ask(question: Question[Any, Any], doing: str, *, labelled: bool = False) -> list[Any]:
        return results_of(material, question, material.labelled if labelled else material.texts, doing)

    def projections() -> Float[np.ndarray, "layer channel_out head channel"]:
        from core.importance.passes.projections import output_projections

        shortest = min(material.prepared.values(), key=lambda text: text.n_tokens)
        return output_projections(material.checkpoint, shortest)

    ways = ways_to_measures(ask, projections, metric=material.metric, normalised=normalised, rule=rule)
    cheap = allowed_measures(ways)
    for name, reason in cheap.left_out:
        print(f"Without {name}: {reason}", file=sys.stderr)
    return list(cheap.measures)


def _print_agreements(correlations: Sequence[Agreement]) -> None:
    print(f"Spearman's correlation with {ABLATION}, over all heads (95% interval):")
    for agreement in correlations:
        value, low, high = (values[0] for values in (agreement.spearman, agreement.low, agreement.high))
        print(f"{agreement.measure:<26}{value:>6.2f} ({low:.2f} to {high:.2f})")


def effects_table(results: Effects) -> pd.DataFrame:
    """One row per head, with the command's columns."""
    layer, head = np.indices(results.delta.shape)
    columns = ("without", "delta", "low", "high", "p", "p_adjusted")
    return pd.DataFrame(
        {
            "layer": layer.ravel(),
            "head": head.ravel(),
            "full": results.full,
            **{name: getattr(results, name).ravel() for name in columns},
        }
    )


def kept_table(alone: KeptAlone) -> pd.DataFrame:
    """One row per layer, with the command's columns."""
    columns: Sequence[str] = ("without", "delta", "low", "high", "p", "p_adjusted")
    return pd.DataFrame(
        {
            "layer": np.arange(len(alone.delta)),
            "even_head": alone.head[0],
            "odd_head": alone.head[1],
            "full": alone.full,
            **{name: getattr(alone, name) for name in columns},
        }
    )


def measures_table(measures: Sequence[Measure], n_texts: int) -> pd.DataFrame:
    """One row per measure and head, with the command's columns."""
    parts = []
    for measure in measures:
        values = measure.values(n_texts)
        layer, head = (axis.ravel() for axis in np.indices(values.shape))
        parts.append(pd.DataFrame({"measure": measure.name, "layer": layer, "head": head, "value": values.ravel()}))
    return pd.concat(parts, ignore_index=True)


def agreement_table(correlations: Sequence[Agreement]) -> pd.DataFrame:
    """One row per measure and layer, with the command's columns; first the correlation over all heads."""
    parts = [
        pd.DataFrame(
            {
                "measure": agreement.measure,
                "layer": pd.array([None, *range(len(agreement.spearman) - 1)], dtype="Int64"),
                **{name: getattr(agreement, name) for name in ("spearman", "low", "high")},
            }
        )
        for agreement in correlations
    ]
    return pd.concat(parts, ignore_index=True)
