"""How often the program is right about heads whose function is known, and other tools on the same models.

Reads what `python -m benchmarks.planted` has kept, and prints nothing where that was not run. A statement is graded
where design and attention agree (`benchmarks.planted.grades.asked`). Intervals are of Clopper and Pearson over
statements, then over models that are drawn anew, since statements about one model are not independent.
"""

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.planted.grades.importance import MEAN_ABLATION
from benchmarks.planted.grades.peers import NotRun, PeerScores, not_run, peer_scores
from benchmarks.planted.grades.places import FOLDER, GRADES, PEERS
from benchmarks.planted.grades.ranks import auroc
from benchmarks.planted.grades.rates import Mean, Rate, rate, rate_of
from benchmarks.planted.grades.records import ModelGrades, Statement
from benchmarks.planted.grades.scores import Scored, Singly, by_measure, singly, together
from benchmarks.shared.markdown import header, row

NOISES: Final = (
    "none", "gaussian 1", "gaussian 2", "gaussian 3", "gaussian 4", "gaussian 5", "uniform", "trained"
)  # fmt: skip
LOWEST: Final = ("none", "gaussian 1")
ABOUT: Final = {
    "claim": "Claims, every head and every role of its host asked",
    "roles": "Roles",
    "name": "Names of heads",
    "link": "Links that stand out",
    "copying": "Copying",
}
LEAST_DETECTED: Final = 0.4
"""Score of TransformerLens from which a head counts as one of its type."""
HEAD_TYPES: Final = {
    "previous_token_head": "previous",
    "duplicate_token_head": "duplicate",
    "induction_head": "induction",
}
"""Roles by the names of TransformerLens."""
MOST_CASES: Final = 15
IN_NATS: Final = ("ablation", MEAN_ABLATION, "attribution against zero", "attribution against mean")
"""Measures that estimate a rise of the loss, so that a sum of them can be compared with that of a set."""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    models = [ModelGrades.read(file) for file in sorted((folder / GRADES).glob("*.json"))]
    if not models:
        print(f"Not measured: there are no grades in {folder / GRADES}.", file=sys.stderr)
        return
    peers, missing = peer_scores(folder / PEERS), not_run(folder / PEERS)
    report_models(models)
    report_statements(models)
    report_wrong(models)
    report_importance(models)
    report_together(models)
    report_exact(models)
    report_head_types(models, peers)
    report_peers_importance(models, peers)
    report_not_run(models, missing)


def report_models(models: Sequence[ModelGrades]) -> None:
    heads = [head for model in models for head in model.truth.heads]
    hosts = Counter(model.truth.host for model in models)
    families = {model.truth.family for model in models}
    by_host = ", ".join(f"{host} {number}" for host, number in sorted(hosts.items()))
    seconds = sum(model.seconds for model in models) / len(models)
    print(
        f"{len(models)} models ({by_host}) of {len(families)} families, with {len(heads)} heads; {seconds:.0f} s of a "
        "processor each."
    )


def report_statements(models: Sequence[ModelGrades]) -> None:
    for about, title in ABOUT.items():
        print(f"\n{title}:")
        header(
            "noise", "models", "statements", "true ones found", "over models", "says it, and it is not", "over models",
            "says it is not, and it is", "over models", "not enough", "not graded",
        )  # fmt: skip
        for noise in (*NOISES, "the two lowest"):
            chosen = [model for model in models if model.truth.noise in (LOWEST if noise not in NOISES else (noise,))]
            if any(statement.about == about for model in chosen for statement in model.statements):
                statements_row(noise, about, chosen)


def statements_row(noise: str, about: str, models: Sequence[ModelGrades]) -> None:
    found = rate_of(models, lambda s: s.about == about and s.truth is True, lambda s: s.verdict == "yes")
    false_yes = rate_of(
        models, lambda s: s.about == about and s.truth is not None, lambda s: s.outcome == "wrong" and not s.truth
    )
    false_no = rate_of(
        models, lambda s: s.about == about and s.truth is not None, lambda s: s.outcome == "wrong" and bool(s.truth)
    )
    own = [statement for model in models for statement in model.statements if statement.about == about]
    outcomes = Counter(statement.outcome for statement in own)
    row(
        noise, len(models), false_yes.of, *rate_cells(found), *rate_cells(false_yes), *rate_cells(false_no),
        outcomes["not enough"], outcomes["not graded"],
    )  # fmt: skip


def rate_cells(found: Rate) -> tuple[str, str]:
    """A share with its interval over statements, and that over models."""
    if not found.of:
        return "none", "none"
    exact = f"{found.found} of {found.of}: {found.share:.4f} [{found.low:.4f}, {found.high:.4f}]"
    return exact, f"[{found.low_over_models:.4f}, {found.high_over_models:.4f}], {found.models_with} of {found.models}"


def report_wrong(models: Sequence[ModelGrades]) -> None:
    print("\nWrong statements of the program, by what the head does; the commonest first:")
    header("noise", "about", "states", "texts", "verdict", "the head looks at", "statements", "models", "such as")
    cases = dict[tuple[str, ...], list[str]]()
    for model in models:
        looks = {head.place: head.looks_at for head in model.truth.heads}
        for statement in model.statements:
            if statement.outcome == "wrong":
                noise = "low" if model.truth.noise in LOWEST else model.truth.noise
                case = (noise, statement.about, statement.states, statement.texts, statement.verdict)
                place = (statement.layer, statement.head)
                cases.setdefault((*case, looks[place]), []).append(f"{model.truth.name} L{place[0]} H{place[1]}")
    ordered = sorted(cases.items(), key=lambda item: (item[0][0] != "low", -len(item[1])))
    for said, places in ordered[:MOST_CASES]:
        row(*said, len(places), len({place.split()[0] for place in places}), places[0])
    if len(ordered) > MOST_CASES:
        print(f"\nAnd {len(ordered) - MOST_CASES} more such cases, each rarer or at more noise.")


def report_importance(models: Sequence[ModelGrades]) -> None:
    for title, chosen in (
        ("at the two lowest levels", [model for model in models if model.truth.noise in LOWEST]),
        ("at all other noise", [model for model in models if model.truth.noise not in LOWEST]),
    ):
        print(f"\nImportance by the program's measures, {title}; heads of {len(chosen)} models:")
        importance_header("measure")
        for measure, scored in by_measure(chosen).items():
            row(measure, *singly_cells(singly(scored)))


def importance_header(first: str) -> None:
    header(
        first, "AUROC, needed", "models", "needed heads missed", "sign opposite", "says nothing, and it is something"
    )


def singly_cells(found: Singly) -> tuple[str, ...]:
    return (
        mean_cell(found.auroc),
        str(found.auroc.models),
        *map(short_cell, (found.missed, found.opposite, found.silent)),
    )


def mean_cell(mean: Mean) -> str:
    return f"{mean.value:.3f} [{mean.low:.3f}, {mean.high:.3f}]" if mean.models else "none"


def short_cell(found: Rate) -> str:
    return f"{found.found} of {found.of} ({found.share:.0%})" if found.of else "none"


def report_together(models: Sequence[ModelGrades]) -> None:
    chosen = [model for model in models if model.truth.redundant_sets or model.truth.backups]
    print(
        f"\nHeads that are needed only together, of {len(chosen)} models: sets of heads each of which can go, and "
        "backups:"
    )
    header("measure", "AUROC, redundant", "models", "AUROC, backups", "models", "sets whose rise the sum tells")
    for measure, scored in by_measure(chosen).items():
        found = together(scored)
        row(
            measure, mean_cell(found.redundant), found.redundant.models, mean_cell(found.backups),
            found.backups.models, short_cell(found.told) if measure in IN_NATS else "none",
        )  # fmt: skip


def report_exact(models: Sequence[ModelGrades]) -> None:
    pairs = [
        (abs(own.rise - exact.rise), max(1.0, abs(exact.rise)))
        for model in models
        for own, exact in zip(model.measured_sets, model.truth.effects.sets, strict=True)
    ]
    direct = [model.direct for model in models if model.direct is not None]
    if pairs:
        most = max(gap / size for gap, size in pairs)
        print(
            f"\nRemoval of {len(pairs)} sets by the program is at most {most:.1e} nats (of rises above 1 that part) "
            "from removal by hooks."
        )
    if direct:
        difference, greatest = (
            max(getattr(each, name) for each in direct) for name in ("greatest_difference", "greatest")
        )
        print(
            f"\nDirect effects on logits, of {len(direct)} models: at most {difference:.1e} from those by hooks, of up "
            f"to {greatest:.1f}."
        )
    refused = Counter((refusal.asked, refusal.reason) for model in models for refusal in model.refusals)
    for (asked, reason), number in refused.most_common():
        print(f"\nNot said of {number} models: {asked}. {reason}")


def report_head_types(models: Sequence[ModelGrades], peers: Mapping[str, Mapping[str, PeerScores]]) -> None:
    """Types of heads by other tools, beside the program's claims on the same models."""
    by_name = {model.truth.name: model for model in models}
    for tool, results in peers.items():
        graded = {name: scores for name, scores in results.items() if scores.says == "head type" and name in by_name}
        if not graded:
            continue
        version = next(iter(graded.values())).version
        print(f"\nTypes of heads by {tool} ({version}), beside claims, of {len(graded)} models:")
        header(
            "by",
            "role",
            "AUROC",
            "true ones found",
            "over models",
            "says it, and it is not",
            "over models",
            "mostly of",
        )
        for head_type, role in HEAD_TYPES.items():
            claims_row(role, [by_name[name] for name in graded])
            for measure in ("mul", "abs"):
                peer_row(f"{tool}, {measure}", role, f"{head_type} {measure}", by_name, graded)


def stated(model: ModelGrades, role: str) -> list[Statement]:
    """The graded claims about a role on probe texts."""
    return [
        statement
        for statement in model.statements
        if (statement.about, statement.states, statement.texts) == ("claim", role, "probe texts")
        and statement.truth is not None
    ]


def claims_row(role: str, models: Sequence[ModelGrades]) -> None:
    cases = [
        (model, statement, statement.score or 0.0, statement.verdict == "yes")
        for model in models
        for statement in stated(model, role)
    ]
    type_row("claim", role, cases)


def peer_row(
    tool: str, role: str, name: str, models: Mapping[str, ModelGrades], results: Mapping[str, PeerScores]
) -> None:
    cases = []
    for model_name, scores in results.items():
        for statement in stated(models[model_name], role):
            score = scores.scores[name][statement.layer][statement.head]
            cases.append((models[model_name], statement, score, score >= LEAST_DETECTED))
    type_row(tool, role, cases)


def type_row(by: str, role: str, cases: Sequence[tuple[ModelGrades, Statement, float, bool]]) -> None:
    if not cases:
        return
    truths, scores = [bool(case[1].truth) for case in cases], [case[2] for case in cases]
    names = sorted({case[0].truth.name for case in cases})
    counts = dict[bool, list[tuple[int, int]]]()
    for truth in (True, False):
        of_model = [
            [case[3] for case in cases if case[0].truth.name == name and case[1].truth is truth] for name in names
        ]
        counts[truth] = [(sum(says), len(says)) for says in of_model]
    wrong = Counter(
        next(head.looks_at for head in model.truth.heads if head.place == (statement.layer, statement.head))
        for model, statement, _, says in cases
        if says and not statement.truth
    )
    commonest = ", ".join(f"{looks_at} {number}" for looks_at, number in wrong.most_common(3)) or "none"
    row(
        by,
        role,
        f"{auroc(scores, truths):.3f}",
        *rate_cells(rate(counts[True])),
        *rate_cells(rate(counts[False])),
        commonest,
    )


def report_peers_importance(models: Sequence[ModelGrades], peers: Mapping[str, Mapping[str, PeerScores]]) -> None:
    by_name = {model.truth.name: model for model in models}
    for tool, results in peers.items():
        graded = {name: scores for name, scores in results.items() if scores.says == "importance" and name in by_name}
        if not graded:
            continue
        measures = next(iter(graded.values())).scores
        print(f"\nImportance by {tool} ({next(iter(graded.values())).version}), of {len(graded)} models:")
        importance_header("score")
        for measure in measures:
            every = [scores.scores[measure] for scores in graded.values()]
            is_signed = any(np.min(values) < 0 for values in every)
            scored = [Scored(by_name[name].truth, of.scores[measure], is_signed) for name, of in graded.items()]
            row(measure, *singly_cells(singly(scored)))
        print(f"\nThe program's, of the same {len(graded)} models:")
        importance_header("measure")
        for measure, own in by_measure(by_name[name] for name in graded).items():
            row(measure, *singly_cells(singly(own)))
        report_peer_sets(tool, graded, by_name)


def report_peer_sets(tool: str, graded: Mapping[str, PeerScores], by_name: Mapping[str, ModelGrades]) -> None:
    chosen = {name: of for name, of in graded.items() if by_name[name].truth.redundant_sets}
    if not chosen:
        return
    print(f"\nHeads that are needed only together, by {tool}, of {len(chosen)} models:")
    header("score", "AUROC, redundant", "models", "AUROC, backups", "models")
    for measure in next(iter(chosen.values())).scores:
        found = together([Scored(by_name[name].truth, of.scores[measure], False) for name, of in chosen.items()])
        row(measure, mean_cell(found.redundant), found.redundant.models, mean_cell(found.backups), found.backups.models)


def report_not_run(models: Sequence[ModelGrades], missing: Sequence[NotRun]) -> None:
    if not missing:
        return
    print("\nWhat did not run:\n")
    names = {model.truth.name for model in models}
    for (tool, reason), number in Counter((each.tool, each.reason) for each in missing if each.model in names).items():
        print(f"- {tool}, {number} models: {reason}")
    for each in missing:
        if each.model is None:
            print(f"- {each.tool}: {each.reason}")


if __name__ == "__main__":
    main()
