"""Set-up: check the bundled checkpoint's bytes and fill the store, so that the first visit shows a result at once."""

import sys
from collections.abc import Callable

from tqdm import tqdm

from cache.distances import distance_question
from cache.inference import Engine, Inference, Report, Status
from cache.parsing import PREDICTIONS, ParsedText
from cache.store import Store
from cache.surface import SURFACE
from core.checkpoints import BUNDLED, check_bundled, find_checkpoint
from core.errors import AnalysisError
from core.parses import dependencies
from core.similar_heads import DistanceSettings
from dashboard.samples import EXAMPLE, read_sample


def prepare() -> None:
    """Find what the pages first show of the samples under the bundled checkpoint, unless the store has it.

    Raises: AnalysisError when the bundled checkpoint or the parser is missing or wrong.
    """
    check_bundled()
    store = Store()
    inference = Inference(store)
    engine = Engine(find_checkpoint(BUNDLED))
    texts = read_sample("both")
    parsed = [ParsedText.of(text, tree.words) for text, tree in zip(texts, dependencies(texts), strict=True)]
    _with_bar("Scoring", lambda report: inference.measures(engine, (EXAMPLE, *texts), report=report))
    inference.look(engine, EXAMPLE)
    _with_bar("Surface", lambda report: inference.answers(engine, SURFACE, texts, report=report))
    _with_bar("Relations", lambda report: inference.answers(engine, PREDICTIONS, parsed, report=report))
    distances = distance_question(DistanceSettings())
    _with_bar("Distances", lambda report: inference.answers(engine, distances, texts, report=report))
    n_results, n_bytes = store.size()
    print(
        f"The bundled checkpoint is sound. Results are kept in {store.folder} "
        f"({n_results} so far, {n_bytes / 1e6:.1f} MB)."
    )
    if store.warning:
        print(store.warning, file=sys.stderr)
    store.close()


def _with_bar(what: str, work: Callable[[Report], object]) -> None:
    """Do some work under a bar that counts texts; silent where nobody watches."""
    with tqdm(desc=f"{what} of the samples", unit="text", disable=not sys.stderr.isatty()) as bar:

        def report(status: Status) -> None:
            bar.total = status.total
            bar.update(status.done - bar.n)

        work(report)


if __name__ == "__main__":
    try:
        prepare()
    except AnalysisError as error:
        sys.exit(str(error))
