"""How often a claim holds that is drawn at random, where there is nothing to find, and one about heads that are built.

Claims of one to four random heads and a random rule are tested on small models with random weights, drawn so wide
that heads are sharp, as they are and with permuted keys; and claims about the heads of a decoder whose weights are set
by hand, with a little noise in all of them.
"""

import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from attention_sieve.core.answering import Analysis, Reading, find_in
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.claims.analysis import CLAIM_ANALYSIS
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.claims.judge import HOLDING, Verdict, judge
from attention_sieve.core.claims.probe import ClaimSettings, ProbedRole, claim_texts, probed
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.probe_texts.make import ProbeTextSettings, fitting_block, probe_texts
from attention_sieve.core.roles.rules import read_role
from benchmarks.shared.markdown import header, row

N_CLAIMS: Final = 1_000
N_TEXTS: Final = 12
SEEDS: Final = range(4)
FAMILIES: Final = ("bert", "gpt2", "llama")
WITHIN_TEXTS: Final = ("previous", "duplicate", "local")
OF_FAMILY: Final = {"bert": ("delimiter",), "gpt2": ("induction", "sink"), "llama": ("induction", "sink")}
"""Rules beside those that apply to any text; further ones look at an offset, as a reader writes them."""
NOISE: Final = 0.005
N_BUILT: Final = 10
_OF_CLAIM: Final[Any] = CLAIM_ANALYSIS
SCORED: Final[Analysis[Any, Any, Any, Any, ProbedRole]] = replace(
    _OF_CLAIM, judge=lambda texts, answers, settings: probed(texts, answers[0], settings)
)
"""The scores by which any claim about the role is judged."""
WRITTEN: Final = 'role = 1\nname = "back {0}"\nletter = "B"\ncolour = "#336699"\n[from]\n[to]\noffset = -{0}\n'


def main() -> None:
    sys.path.append(str(Path(__file__).parents[2] / "tests" / "material"))
    rules = (*WITHIN_TEXTS, *(read_role(WRITTEN.format(offset)).id for offset in (2, 5)))
    print(f"Of {N_CLAIMS:,} claims drawn at random, over {N_TEXTS} texts each, how many heads there were and hold:")
    header("model", "keys", "claims", "heads", "hold", "only as a ruler", "claims with a head that holds")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = {(family, seed): random_model(folder, family, seed) for family in FAMILIES for seed in SEEDS}
        report_random(models, rules)
        report_built(folder)


def random_model(folder: Path, family: str, seed: int) -> Checkpoint:
    from small_checkpoints import save

    longer = {"n_positions" if family == "gpt2" else "max_position_embeddings": 200}
    return loaded(save(family, folder / f"{family}-{seed}", seed=seed, **longer))


def loaded(folder: str | Path) -> Checkpoint:
    return load_checkpoint(find_checkpoint(str(folder)), device="cpu")


def scored(checkpoint: Checkpoint, role: str, permuted: int | None = None) -> ProbedRole:
    """On repeats for a role that has no probe texts."""
    usual = ClaimSettings(N_TEXTS, claim=Claim((), role))
    of_role = replace(usual.role_settings, scores=replace(usual.role_settings.scores, permuted=permuted))
    settings = replace(usual, role_settings=of_role)
    block = fitting_block(checkpoint.tokenizer, checkpoint.max_tokens)
    repeats = probe_texts(checkpoint.tokenizer, ProbeTextSettings(number=N_TEXTS, block=block))
    given = None if role in ("previous", "induction", "duplicate") else repeats
    texts = claim_texts(settings, given, checkpoint.tokenizer, checkpoint.max_tokens)
    pass_settings = PassSettings(checkpoint.files.kinds[0])
    prepared, _ = prepare_all(checkpoint, [each.text for each in texts], pass_settings, "error")
    reading = Reading(checkpoint=checkpoint, pass_settings=pass_settings, inputs=texts, prepared=prepared)
    return find_in(SCORED, reading, settings)


def report_random(models: dict[tuple[str, int], Checkpoint], rules: tuple[str, ...]) -> None:
    random, kept = np.random.default_rng(0), dict[Any, ProbedRole]()
    counts: dict[tuple[str, str], Counter[str]] = {}
    for _ in range(N_CLAIMS):
        family, seed = FAMILIES[random.integers(len(FAMILIES))], int(random.integers(len(SEEDS)))
        of_family = (*rules, *OF_FAMILY[family])
        role, permuted = of_family[random.integers(len(of_family))], (None, 0)[random.integers(2)]
        key = (family, seed, role, permuted)
        if key not in kept:
            kept[key] = scored(models[family, seed], role, permuted)
        shape = kept[key].scored.scores.shape[2:]
        drawn = random.permutation(np.prod(shape))[: random.integers(1, 5)]
        heads = tuple((int(layer), int(head)) for layer, head in np.argwhere(np.ones(shape))[drawn])
        verdicts = judge(Claim(heads, role), kept[key]).verdicts
        of_model = counts.setdefault((family, "as they are" if permuted is None else "permuted"), Counter())
        of_model.update(["claims", *verdicts, *(["any"] if set(HOLDING) & set(verdicts) else [])])
    for (family, keys), count in sorted(counts.items()):
        holds, ruler = sum(count[verdict] for verdict in HOLDING), count["only as a positional ruler"]
        n_heads = sum(count[verdict] for verdict in get_args(Verdict))
        row(family, keys, count["claims"], n_heads, holds, ruler, f"{count['any'] / count['claims']:.1%}")


def report_built(folder: Path) -> None:
    from planted_copies import BEFORE, INDUCTION, RULER, save_planted_copies

    print(f"\nHeads that are built, of {N_BUILT} decoders with normal noise of {NOISE} in all weights:")
    header("head", "claim", "holds", "only as a ruler", "does not hold")
    models = [loaded(save_planted_copies(folder / f"built-{seed}", NOISE, seed)) for seed in range(N_BUILT)]
    for name, head, role in (
        ("looks at the token before", BEFORE, "previous"),
        ("finds what followed a copy", INDUCTION, "induction"),
        ("looks one period back", RULER, "induction"),
    ):
        count = Counter(judge(Claim((head,), role), scored(model, role)).verdicts[0] for model in models)
        row(name, role, count["holds"], count["only as a positional ruler"], count["does not hold"])


if __name__ == "__main__":
    main()
