"""Set-up: check the bundled checkpoint's bytes and fill the store, so that the first visit shows a result at once; with
the argument `runs`, fetch or train what other pages open on, which takes minutes and may be interrupted."""

import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tqdm import tqdm

from attention_sieve.cache.answers import Engine, FindingRequest
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.cache.store.store import Store
from attention_sieve.core.answering import Analysis
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, randomly_initialised
from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder
from attention_sieve.core.claims.analysis import CLAIM_ANALYSIS
from attention_sieve.core.claims.claim import claim_of
from attention_sieve.core.claims.probe import ClaimSettings, ClaimText
from attention_sieve.core.comparison.question import COMPARISON
from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.command import sample_checkpoint
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import ablation_question, gated_question, layers_off
from attention_sieve.core.laboratory.command import sample_laboratory
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.controls import control_passes
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.question import MATCHED_PAIRS
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.texts.text import read_typed
from attention_sieve.core.word_links.analysis import DISTANCES
from attention_sieve.core.word_links.pronouns import PRONOUNS
from attention_sieve.dashboard.packages import check_packages
from attention_sieve.dashboard.samples import EXAMPLE, VARIED, mention_sample, read_sample
from attention_sieve.dashboard.views.claims.wording import EXAMPLES
from attention_sieve.dashboard.views.lessons.sentences import FAR

AnyRequest = FindingRequest[Any, Any, Any, Any, Any]


def prepare() -> None:
    """Compute what the pages first show of the samples under the bundled checkpoint, unless the store has it.

    Raises: AnalysisError when the bundled checkpoint or the parser is missing or wrong.
    """
    check_packages()
    store = Store()
    inference = Inference(store)
    engine = Engine(find_checkpoint(BUNDLED))
    texts = read_sample("both")
    _find("Scoring", inference, _request(engine, ROLE_ANALYSIS, (EXAMPLE, *texts)))
    inference.look(engine, EXAMPLE)
    inference.look(engine, read_typed(FAR.sentence)[0])
    inference.ask(engine, ablation_question("output"), [EXAMPLE], too_long="truncate")
    for sentence in PRONOUNS:
        inference.look(engine, sentence.text, too_long="truncate")
    for of_sample in (texts, read_sample(VARIED)):
        _find("Surface", inference, _request(engine, SURFACE_ANALYSIS, of_sample))
        _find("Relations", inference, _request(engine, RELATION_ANALYSIS, of_sample))
    _find("Mentions", inference, _request(engine, COREFERENCE_ANALYSIS, mention_sample()))
    _find("Distances", inference, _request(engine, SIMILARITY_ANALYSIS, texts))
    ablation = _request(engine, ABLATION_ANALYSIS, tuple(map(LabelledText, texts)))
    _find("Importance", inference, ablation)
    layers = gated_question("output", layers_off(*inference.find(ablation).finding.damage.shape))
    _with_bar("Layers", lambda report: inference.ask(engine, layers, texts, report=report))
    _with_bar("Pairs", lambda report: inference.ask(engine, MATCHED_PAIRS, texts, report=report))
    _with_bar("Habits", lambda report: inference.ask(engine, DISTANCES, texts, too_long="truncate", report=report))
    for control in control_passes(engine.files, texts):
        request = _request(replace(engine, files=control.files), ROLE_ANALYSIS, control.texts)
        request = replace(request, settings=control.settings, too_long="truncate")
        _find(f"Scoring, {control.name},", inference, request)
    example = claim_of(EXAMPLES[BUNDLED], None)
    settings = ClaimSettings(claim=example, role_settings=RoleSettings(ScoreSettings(roles=(example.role,))))
    claim = _request(engine, CLAIM_ANALYSIS, tuple(map(ClaimText, texts)))
    _find("Testing a claim on", inference, replace(claim, settings=settings))
    pair = (engine, replace(engine, files=randomly_initialised(engine.files)))
    _with_bar("Comparing", lambda report: inference.ask(pair, COMPARISON, texts, report=report))
    inference.close()  # which waits for the last results to be written
    n_results, n_bytes = store.size()
    print(
        f"The bundled checkpoint is sound. Results are kept in {store.folder} "
        f"({n_results} so far, {n_bytes / 1e6:.1f} MB)."
    )
    if store.warning:
        print(store.warning, file=sys.stderr)
    store.close()


def _request(engine: Engine, analysis: Analysis[Any, Any, Any, Any, Any], inputs: Sequence[Any]) -> AnyRequest:
    return FindingRequest(engine, analysis, tuple(inputs), analysis.settings, engine.settings(None))


def _find(label: str, inference: Inference, request: AnyRequest) -> None:
    _with_bar(label, lambda report: inference.find(request, report))


def _with_bar(label: str, work: Callable[[Report], object]) -> None:
    """Do some work with a progress bar that counts texts; silent if standard error is no terminal."""
    with tqdm(desc=f"{label} of the samples", unit="text", disable=not sys.stderr.isatty()) as bar:

        def report(status: Status) -> None:
            bar.total = status.total
            bar.update(status.done - bar.n)

        work(report)


def make_runs() -> None:
    """Fetch the small decoder, train the laboratory's model and the fine-tuned pair, or go on with what was begun."""
    for make in (make_sample_decoder, sample_laboratory, partial(sample_checkpoint, Namespace(device="auto"))):
        try:
            make()
        except AnalysisError as error:  # such as that it is on already: the others may yet be made
            print(error, file=sys.stderr)


if __name__ == "__main__":
    try:
        make_runs() if sys.argv[1:] == ["runs"] else prepare()
    except AnalysisError as error:
        sys.exit(str(error))
