"""A comparison of two checkpoints: in parallel against one after the other, and from the store against computing.

Goals: 1,000 texts under two checkpoints a second time, from the store and tested, in under 1 s.
"""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.comparison.differences import paired_tests
from attention_sieve.core.comparison.question import COMPARISON
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import ScoreSettings, role_scores
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.text import Text
from benchmarks.shared.sentences import sentences

N_TEXTS: Final = 1000
ROUNDS: Final = 3


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        a = Engine(find_checkpoint(BUNDLED))
        b = Engine(find_checkpoint(str(changed_copy(Path(folder) / "changed"))))
        texts = [Text((sentence,)) for sentence in sentences(N_TEXTS)]
        warm_up(Path(folder) / "warm", (a, b))
        in_turn = seconds(lambda: [alone(Path(folder) / "in turn", engine, texts) for engine in (a, b)])
        store = Path(folder) / "in step"
        in_step = seconds(lambda: compared(store, (a, b), texts))
        print(f"{N_TEXTS:,} texts under two checkpoints{'':<26}{'seconds':>10}{'ratio':>8}")
        print(f"{'scores of one, then of the other':<56}{in_turn:>10.2f}{1:>8.2f}")
        print(f"{'both in step, with the divergence of their attention':<56}{in_step:>10.2f}{in_step / in_turn:>8.2f}")
        kept = min(seconds(lambda: kept_and_tested(store, (a, b), texts)) for _ in range(ROUNDS))
        print(f"{'second time: from the store, with all tests':<56}{kept:>10.2f}{kept / in_step:>8.3f}")


def changed_copy(folder: Path) -> Path:
    """The bundled checkpoint with its weights moved a little."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    source = find_checkpoint(BUNDLED).folder
    model = AutoModel.from_pretrained(source)
    torch.manual_seed(0)
    with torch.no_grad():
        for weights in model.encoder.parameters():
            weights += 0.02 * torch.randn_like(weights)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source).save_pretrained(folder)
    return folder


def seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def warm_up(folder: Path, engines: tuple[Engine, Engine]) -> None:
    """Import what a first pass imports, and read the weights from the disk."""
    compared(folder, engines, [Text(("The cat sat.",))])


def alone(folder: Path, engine: Engine, texts: list[Text]) -> None:
    inference = Inference(Store(folder))
    inference.ask(engine, SCORES, texts)
    inference.close()


def compared(folder: Path, engines: tuple[Engine, Engine], texts: list[Text]) -> None:
    inference = Inference(Store(folder))
    inference.ask(engines, COMPARISON, texts)
    inference.close()


def kept_and_tested(folder: Path, engines: tuple[Engine, Engine], texts: list[Text]) -> None:
    """What a page does with a stored comparison: look it up, test each side, and test the differences."""
    kept = Inference(Store(folder)).kept(engines, COMPARISON, texts)
    if kept is None:
        raise RuntimeError("The store has not kept the comparison.")
    sides = ([text.sides[side] for text in kept.results] for side in (0, 1))
    a, b = (role_scores(measures, ScoreSettings()).scores for measures in sides)
    for scores in (a, b):
        role_tests(scores, ROLES, Criterion(), 1.0)
    paired_tests(a, b, ROLES)


if __name__ == "__main__":
    main()
