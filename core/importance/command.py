"""The commands `python -m attention_sieve ablate` and `importance`: how much each head matters for a metric."""

import argparse
import inspect
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.commands import TABLES, check_output, write_table
from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.importance.agreement import NO_ORDER, Agreement, agreements
from attention_sieve.core.importance.cheap import allowed_measures, ways_to_measures
from attention_sieve.core.importance.effects import CORPORA, Draws, Effects, KeptAlone, effects, halves, kept_alone
from attention_sieve.core.importance.material import (
    Material,
    ablation_outcomes,
    add_metric_options,
    material_facts,
    outputs_of_heads,
    read_material,
    results_of,
)
from attention_sieve.core.importance.measures import ABLATION, Measure, damage
from attention_sieve.core.importance.per_text import RELEVANCE_RULE
from attention_sieve.core.importance.question import REPLACEMENTS, mean_outputs
from attention_sieve.core.importance.verdicts import NEEDS, RESAMPLES, verdict_facts, without_verdict
from attention_sieve.core.options import add_correction_option, add_output_option
from attention_sieve.core.passes.question import Question

FEWEST_RESAMPLES: Final = 100
MOST_RESAMPLES: Final = 100_000


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    parser = commands.add_parser(
        "ablate",
        help="measure the effect of ablating each head",
        description=f"{inspect.getdoc(ablate)}\n\n{NEEDS}",
    )
    add_metric_options(parser)
    _add_ablation_options(
        parser, RESAMPLES, "number N of bootstrap resamples and of sign flips; the smallest possible p is 2 / (N + 1)"
    )
    add_correction_option(parser)
    parser.add_argument(
        "--keep-one",
        type=Path,
        help="second file to write: the effect of keeping only the best head of each layer, which is chosen on one "
        "half of the texts and evaluated on the other",
    )
    parser.set_defaults(run=ablate)
    parser = commands.add_parser(
        "importance",
        help="measure the importance of each head by ablation, gradients, relevance and others",
        description=importance.__doc__,
    )
    add_metric_options(parser)
    _add_ablation_options(parser, CORPORA, "number of bootstrap resamples for the intervals of correlations")
    parser.add_argument("--no-ablation", action="store_true", help="leave out ablation, which takes longest")
    parser.add_argument(
        "--normalise", action="store_true", help="divide the gradient measures of each layer by their Euclidean norm"
    )
    parser.add_argument(
        "--agreement",
        type=Path,
        help="second file to write: rank correlation (Spearman) of each measure with ablation",
    )
    parser.set_defaults(run=importance)


def _add_ablation_options(parser: argparse.ArgumentParser, resamples: int, description: str) -> None:
    parser.add_argument(
        "--replace",
        default="zero",
        choices=REPLACEMENTS,
        help="what replaces the output of an ablated head: zero, or its mean over the texts; default: %(default)s",
    )
    parser.add_argument(
        "--resamples", type=_resamples, default=resamples, metavar="N", help=f"{description}; default: {resamples}"
    )
    add_output_option(parser)


def _resamples(text: str) -> int:
    """Parse the number of resamples."""
    if not text.isascii() or not text.isdigit() or not FEWEST_RESAMPLES <= int(text) <= MOST_RESAMPLES:
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is not a number of resamples; write one from {FEWEST_RESAMPLES} to {MOST_RESAMPLES}"
        )
    return int(text)


def ablate(arguments: argparse.Namespace) -> None:
    """Ablate each head in turn and measure how the metric changes; write a row per head.

    A larger output change or loss is worse; a larger accuracy, matthews, f1 or pearson is better. The output change
    cannot be below 0, so for that metric p only shows that a head has any effect. A masked language model predicts 15%
    of the tokens of each text, always the same ones; other language models predict every token after the first.

    Columns:
        layer, head: index of the layer and of the head, from 0
        full: metric with all heads on; 0 for the metric output
        without: metric without this head
        delta: without - full
        low, high: 95% confidence interval of delta
        p: two-sided p-value of "no change", the larger of a sign-flip test and a bootstrap-t test over texts, or over
            documents if these are known
        p_adjusted: p after correction over all heads

    Columns of --keep-one, with a row per layer:
        layer: index of the layer, from 0
        even_head, odd_head: the head that is best on every second text from the first on, and from the second on
        full, without, delta, low, high, p, p_adjusted: as above, for all other heads of the layer ablated at once
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
    """Measure the importance of each head in several ways; write a row per measure and head.

    Measures that this checkpoint does not support are left out, with the reason on standard error. The command prints
    the rank correlation of each measure with ablation, and how much of the relevance arrives at the tokens.

    Columns:
        measure: name of the measure
        layer, head: index of the layer and of the head, from 0
        value: importance of the head; larger is more important

    Measures:
        ablation: how much worse the metric is without the head
        gradient per token, text or batch: absolute value of the head's output times its gradient, taken per token, per
            text or per batch
        attribution against zero, against mean: first-order estimate of how much the loss rises when the head's output
            is replaced by zero, or by its mean
        wanda-sp, flap: pruning scores, computed from outputs and weights
        confidence: largest attention weight of a query, mean over queries
        relevance: share of the head in the relevance of its layer, by layer-wise relevance propagation

    Columns of --agreement:
        measure: name of the measure
        layer: empty for the correlation over all heads
        spearman, low, high: rank correlation with ablation, and its 95% bootstrap interval over texts
    """
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.agreement:
        check_output(arguments.agreement, TABLES, [arguments.texts, arguments.output])
    if arguments.agreement and arguments.no_ablation:
        raise AnalysisError("Agreement is measured against ablation. Leave out either --no-ablation or --agreement.")
    material = read_material(arguments)
    measures = cheap_measures(material, arguments.normalise)
    facts = material_facts(arguments, material) | {"replaced by": arguments.replace, "relevance rule": RELEVANCE_RULE}
    if not arguments.no_ablation:
        means = mean_outputs(outputs_of_heads(material)) if arguments.replace == "mean" else None
        ablation = damage(ablation_outcomes(material, means=means), material.score)
        correlations = agreements(measures, ablation, Draws(material.documents, arguments.resamples))
        _print_agreements(correlations)
        if arguments.agreement:
            write_table(arguments.agreement, agreement_table(correlations), facts)
        measures = [ablation, *measures]
    for conserved in (measure.conserved for measure in measures if measure.conserved is not None):
        print(f"{np.median(conserved):.1%} of the relevance arrives at the tokens (median over texts).")
    write_table(arguments.output, measures_table(measures, len(material.prepared)), facts)


def cheap_measures(material: Material, normalised: bool) -> list[Measure]:
    """All measures except ablation that the checkpoint supports; the others are named on standard error."""

    def ask(question: Question[Any, Any], doing: str, *, labelled: bool = False) -> list[Any]:
        return results_of(material, question, material.labelled if labelled else material.texts, doing)

    def projections() -> Float[np.ndarray, "layer channel_out head channel"]:
        from attention_sieve.core.importance.passes.projections import output_projections

        shortest = min(material.prepared.values(), key=lambda text: text.n_tokens)
        return output_projections(material.checkpoint, shortest)

    ways = ways_to_measures(ask, projections, metric=material.metric, normalised=normalised)
    cheap = allowed_measures(ways)
    for name, reason in cheap.left_out:
        print(f"Without {name}: {reason}", file=sys.stderr)
    return list(cheap.measures)


def _print_agreements(correlations: Sequence[Agreement]) -> None:
    if all(np.isnan(agreement.spearman[0]) for agreement in correlations):
        print(NO_ORDER)
        return
    print(f"Spearman's rank correlation with {ABLATION}, over all heads (95% interval):")
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
