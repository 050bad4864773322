"""Set-up: check the bundled checkpoint's bytes and fill the store, so that the first visit shows a result at once."""

import sys

from tqdm import tqdm

from cache.inference import Engine, Inference
from cache.store import Store
from core.checkpoints import BUNDLED, check_bundled, find_checkpoint
from core.errors import AnalysisError
from dashboard.samples import EXAMPLE, read_sample


def prepare() -> None:
    """Score the samples and look at the example under the bundled checkpoint, unless the store has them.

    Raises: AnalysisError when the bundled checkpoint or the parser is missing or wrong.
    """
    check_bundled()
    store = Store()
    inference = Inference(store)
    engine = Engine(find_checkpoint(BUNDLED))
    texts = (EXAMPLE, *read_sample("both"))
    with tqdm(total=len(texts), desc="Scoring the samples", unit="text", disable=not sys.stderr.isatty()) as bar:
        inference.measures(engine, texts, report=lambda status: bar.update(status.done - bar.n))
    inference.look(engine, EXAMPLE)
    n_results, n_bytes = store.size()
    print(
        f"The bundled checkpoint is sound. Results are kept in {store.folder} "
        f"({n_results} so far, {n_bytes / 1e6:.1f} MB)."
    )
    if store.warning:
        print(store.warning, file=sys.stderr)
    store.close()


if __name__ == "__main__":
    try:
        prepare()
    except AnalysisError as error:
        sys.exit(str(error))
