"""Time of scoring the samples and of the tests that follow, over the time of the model's output alone (SDPA).

"scoring" is all of it from texts to measures: tokens, words' relations, sieves, references, pass. The tests that follow
need no pass: those of roles, and their stability over bootstrap resamples, which stays in memory while tau moves.
"""

from collections.abc import Callable

from attention_sieve.core import analysis
from attention_sieve.core.passes.texts import prepare_all, with_relations
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion, resamples, stability
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.scores import layer_sieves
from attention_sieve.core.roles.uncertainty.anytime import role_evidence
from attention_sieve.core.roles.uncertainty.intervals import with_syntactic_intervals
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared import material

SECONDS = 20
MOVED_TAU = 2.5


def main() -> None:
    material.print_machine()
    checkpoint, texts = material.bundled(), read_sample("both")
    by_text, _ = prepare_all(checkpoint, texts, material.SETTINGS, "error")
    batches = material.planned(with_relations(list(by_text.values()), texts), checkpoint.device)
    attention, sdpa = checkpoint.attentions["self"], material.with_attention(checkpoint, "sdpa")
    measured = analysis.results(checkpoint, SCORES, texts)
    scored = role_scores(measured, ScoreSettings())
    drawn = resamples(scored.scores, scored.uniform)
    tests = role_finding(scored, Criterion()).tests
    parts: dict[str, Callable[[], object]] = {
        "model's output": lambda: material.bare(checkpoint, sdpa, batches),
        "scoring": lambda: analysis.results(checkpoint, SCORES, texts),
        "  of it, sieves and references": lambda: [layer_sieves(batch, attention) for batch in batches],
        "scores of roles": lambda: role_scores(measured, ScoreSettings()),
        "tests of roles, tau moved": lambda: with_syntactic_intervals(
            role_finding(scored, Criterion(tau=MOVED_TAU)).tests, scored.scores
        ),
        "resamples of the texts": lambda: resamples(scored.scores, scored.uniform),
        "stability, tau moved": lambda: stability(tests, drawn),
        "evidence": lambda: role_evidence(scored.scores, Criterion(tau=MOVED_TAU), scored.uniform),
    }
    seconds, ratios = material.median_ratios(list(parts.values()), SECONDS)
    print(f"{len(texts)} texts of the samples; the model's output alone takes {seconds:.2f} s")
    for name, ratio in zip(parts, ratios, strict=True):
        print(f"{name:<32}{ratio:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
