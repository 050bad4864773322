"""What the tests of claims, and of roles beside others at the same distance, get wrong: by simulation.

First the least effect: heads whose attention is a mixture of one that follows a relation and of one that always looks
at a distance, at several strengths, by significance alone, by LEAST_TIMES and by ten points of attention. Then the
heads of the decoder whose every head is known (`shared/planted/known.py`), alone and mixed. Then how often false claims
hold over sentences of few documents, of heads that were chosen on the same texts, and where scores are skewed to the
left; and how often intervals of a correlation of ranks cover it.
"""

import importlib.util
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float
from scipy.special import stdtr

import attention_sieve as sieve
from attention_sieve.core.analysis import results
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.importance.agreement import rank_correlation
from attention_sieve.core.roles.hypotheses import Criterion, one_sided, role_tests
from attention_sieve.core.roles.question import matched_question
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.means import correlation_interval, moments
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, text_of_ids
from benchmarks.shared.markdown import header, row

PLANTED: Final = Path(__file__).parents[3] / "shared" / "planted" / "known.py"
N_HEADS: Final = 2_000
N_TEXTS: Final = 30
POINTS: Final = 0.1
STRENGTHS: Final = (0.05, 0.1, 0.3, 0.8)
"""Attention that a head does not leave at rest."""
FOLLOWS: Final = (0.0, 0.08, 0.2, 0.4, 0.6, 1.0)
"""Part of it that follows the relation, and not the distance. 0.08 is what words that a relation joins get more than
others from L1 H8 of the bundled checkpoint, which looks at the next word: such words are seldom punctuation."""
ALPHA: Final = 0.05
CRITERION: Final = Criterion(tau=0.5, correction="none")
Values = Float[np.ndarray, "text head"]
LEFT_SKEWED: Final[dict[str, Callable[[np.random.Generator, tuple[int, int]], Values]]] = {
    "exponential, mirrored": lambda random, shape: 1 - random.exponential(size=shape),
    "lognormal (s = .5), mirrored": lambda random, shape: np.exp(0.125) - random.lognormal(0, 0.5, shape),
    "beta (5, 1.5)": lambda random, shape: random.beta(5, 1.5, shape) - 5 / 6.5,
    "normal": lambda random, shape: random.normal(size=shape),
}


def main() -> None:
    report_mixtures()
    if PLANTED.is_file():
        report_known()
    report_documents()
    report_chosen()
    report_skewed()
    report_rankings()


def report_mixtures() -> None:
    print(
        f"Heads that give some attention, of which a part follows a relation and the rest a distance: {N_TEXTS} texts,"
    )
    print("normal noise between texts of a fifth. Share of heads that beat others at the same distance:")
    rules = ("significant", f"and {LEAST_TIMES:g} times", f"and {POINTS:.0%} of attention")
    header("attention", "part that follows", *rules, f"significantly {LEAST_TIMES:g} times")
    random = np.random.default_rng(0)
    for strength in STRENGTHS:
        for part in FOLLOWS:
            joined = strength * (1 + 0.2 * random.normal(size=(N_TEXTS, N_HEADS)))
            others = strength * (1 - part) * (1 + 0.2 * random.normal(size=(N_TEXTS, N_HEADS)))
            significant = one_sided(*moments(joined - others), 0.0, 1).p < ALPHA
            of_joined, of_others = joined.mean(axis=0), others.mean(axis=0)
            row(
                f"{strength:g}",
                f"{part:g}",
                share(significant),
                share(significant & (of_joined >= LEAST_TIMES * of_others)),
                share(significant & (of_joined - of_others >= POINTS)),
                share(one_sided(*moments(joined - LEAST_TIMES * others), 0.0, 1).p < ALPHA),
            )


def report_known() -> None:
    spec = importlib.util.spec_from_file_location("known", PLANTED)
    assert spec is not None
    assert spec.loader is not None
    known = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(known)
    random, question = np.random.default_rng(0), matched_question("induction")
    blocks = [random.permutation(np.arange(1, known.V))[:25].tolist() for _ in range(N_TEXTS)]
    with tempfile.TemporaryDirectory() as folder:
        known.known().save_pretrained(folder)
        known.tokenizer().save_pretrained(folder)
        checkpoint = load_checkpoint(find_checkpoint(folder), device="cpu")
        texts = [text_of_ids(GivenTokens((0, *4 * block))) for block in blocks]
        found = results(checkpoint, question, texts)
        report_verdicts(folder, texts)
    joined, others = (np.stack([getattr(text, name)[0] for text in found]) for name in ("related", "unrelated"))
    print(
        "\nThe decoder whose heads are known, on random tokens four times at one period; an induction head (L1 H1), a"
    )
    print(
        "ruler of that distance (L1 H2), an even one (L1 H5), and mixtures of their attention. Times uniform attention:"
    )
    header("head", "what induction joins", "others at the same distance", "times", "p", "beats them")
    induction, ruler, even = (1, 1), (1, 2), (1, 5)
    mixtures: dict[str, dict[tuple[int, int], float]] = {
        "L1 H1": {induction: 1},
        "L1 H2": {ruler: 1},
        "L1 H5": {even: 1},
        "half of each, H1 and H2": {induction: 0.5, ruler: 0.5},
        "a quarter of H1, three of H2": {induction: 0.25, ruler: 0.75},
        "a tenth of H1, the rest H5": {induction: 0.1, even: 0.9},
        "a tenth of H2, the rest H5": {ruler: 0.1, even: 0.9},
    }
    for name, weights in mixtures.items():
        both = [np.sum([weight * side[:, *head] for head, weight in weights.items()], 0) for side in (joined, others)]
        test = one_sided(*moments(both[0] - both[1]), 0.0, 1)
        times = both[0].mean() / both[1].mean()
        beats = times >= LEAST_TIMES and (test.p < ALPHA or bool(test.constant_above))
        p = "none" if np.isnan(test.p) else f"{test.p:.2g}"
        row(name, f"{both[0].mean():.2f}", f"{both[1].mean():.2f}", f"{times:.2f}", p, "yes" if beats else "no")


def report_verdicts(folder: str, texts: list[Text]) -> None:
    print("\nThat every head of the decoder whose heads are known has a role, on probe texts or on tokens four times")
    print("at one period; who does:")
    verdicts = ("holds", "holds (not tested against a ruler)", "only as a positional ruler")
    header("role", "texts", *verdicts)
    everywhere = ", ".join(f"{layer}-{head}" for layer, head in np.ndindex(2, 6))
    for role, given in (
        *((role, None) for role in ("previous", "induction", "duplicate")),
        *((role, texts) for role in ("sink", "induction", "duplicate")),
    ):
        table = sieve.claim(folder, everywhere, given, role=role, device="cpu").table
        named = pd.Series(map(head_name, table["layer"], table["head"])).groupby(table["verdict"]).agg(", ".join)
        row(role, "probe texts" if given is None else "one period", *(named.get(each, "none") for each in verdicts))


def report_documents() -> None:
    print(f"\nFalse claims (mean share at tau) that hold at {ALPHA}; documents differ as much as their sentences do:")
    header("sentences", "documents", "sentences as units", "documents as units")
    random = np.random.default_rng(1)
    for n_texts, n_documents in ((20, 2), (20, 4), (40, 8), (60, 20)):
        document = np.arange(n_texts) * n_documents // n_texts
        by_document = random.normal(0, 0.1, (n_documents, N_HEADS))[document]
        scores = CRITERION.tau + by_document + random.normal(0, 0.1, (n_texts, N_HEADS))
        row(n_texts, n_documents, share(holds(scores)), share(holds(scores, document)))


def report_chosen() -> None:
    print("\nFalse claims about the best of many heads, each with its mean at tau, that hold on the texts on which it")
    print("was the best, and on as many others:")
    header("heads", "texts", "the same texts", "other texts")
    random = np.random.default_rng(2)
    for n_heads in (12, 72, 144):
        for n_texts in (20, 60):
            held = np.zeros(2)
            for _ in range(400):
                same, other = CRITERION.tau + random.gamma(4, 0.1, (2, n_texts, n_heads)) - 0.4
                best = same.mean(axis=0).argmax()
                held += [holds(texts[:, [best]])[0] for texts in (same, other)]
            row(n_heads, n_texts, *(f"{each:.2f}" for each in held / 400))


def report_skewed() -> None:
    print(f"\nShare of tests at {ALPHA} that find a mean above its true value, by Student's t, and by sign flips:")
    header("scores", "texts", "t", "sign flips")
    random = np.random.default_rng(3)
    for name, law in LEFT_SKEWED.items():
        for n_texts in (10, 20, 30, 60):
            values = law(random, (n_texts, N_HEADS))
            t = values.mean(axis=0) / (values.std(axis=0, ddof=1) / np.sqrt(n_texts))
            signs = random.choice([-1.0, 1.0], size=(499, n_texts))
            flips = (1 + (signs @ values >= values.sum(axis=0) - 1e-12).sum(axis=0)) / 500
            row(name, n_texts, share(stdtr(n_texts - 1, -t) <= ALPHA), share(flips <= ALPHA))


def report_rankings() -> None:
    print("\nShare of intervals (95%) over heads that cover Spearman's correlation; heads are drawn from a normal law:")
    header("heads", "correlation", "Fisher's transformation, Bonett and Wright", "bootstrap over heads")
    random = np.random.default_rng(4)
    for n_heads in (5, 8, 12, 40):
        for rho in (0.0, 0.5, 0.8):
            true, covers = 6 / np.pi * np.arcsin(rho / 2), np.zeros(2)
            for _ in range(300):
                a, b = random.normal(size=(2, n_heads))
                b = rho * a + np.sqrt(1 - rho**2) * b
                value = float(rank_correlation(a[None], b[None])[0])
                drawn = random.integers(n_heads, size=(399, n_heads))
                resampled = np.nanquantile(rank_correlation(a[drawn], b[drawn]), [0.025, 0.975])
                for column, (low, high) in enumerate(
                    (correlation_interval(value, n_heads, 0.05, ranked=True), resampled)
                ):
                    covers[column] += low - 1e-9 <= true <= high + 1e-9
            row(n_heads, f"{true:.2f}", *(f"{each:.3f}" for each in covers / 300))


def holds(scores: Values, document: np.ndarray | None = None) -> np.ndarray:
    """Which heads hold a role by shares above chance."""
    return role_tests(scores[:, None, None], ("role",), CRITERION, 0.0, document).holds[0, 0]


def share(values: np.ndarray) -> str:
    return f"{values.mean():.3f}"


if __name__ == "__main__":
    main()
