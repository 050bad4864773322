"""Corpora: speed against the bare forward, two processes, Ray's overhead, opening a million texts, and a plan for 10^9.

Goals: at least 0.9 of the bare forward over the same texts in sorted batches, disk included; Ray at most 5% above local
at shards of 10,000; one million texts opened to a drawn grid in under 1.0 s and 300 MB; the top 20 texts of a head in a
shard of 100,000 in under 1 s. The first is for texts that were parsed once for all checkpoints: a run that parses them
takes longer by the parser, which needs a quarter of the bundled checkpoint's forward.
`benchmarks/corpora/corpus_kills.py` holds the engines against each other byte by byte.
"""

import gc
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from attention_sieve.__main__ import GARBAGE_AFTER
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.corpus.manifest import STATISTICS, CorpusSettings, Manifest, score_path
from attention_sieve.core.corpus.plan import corpus_plan, parse_corpus, write_plan
from attention_sieve.core.corpus.run import run, score_and_write
from attention_sieve.core.corpus.score_files import highest, read_role_scores, write_scores
from attention_sieve.core.corpus.statistics import EVERYTHING, merged_statistics, statistics_of, write_statistics
from attention_sieve.core.corpus.texts.text_shards import read_texts, write_texts
from attention_sieve.core.engines.local import run_local
from attention_sieve.core.engines.on_ray import run_on_ray
from attention_sieve.core.engines.work import Do, Executor, TaskOutcome
from attention_sieve.core.passes.texts import prepare_all, with_relations
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS, ROLE_REDUCTION, UNIFORM
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.running import Journal
from benchmarks.shared import material
from benchmarks.shared.memory import in_own_process
from benchmarks.shared.sentences import sentences

N_BUNDLED, N_BASE = 2_000, 100
"""Texts of a round, under the bundled checkpoint and under BERT-base's shape."""
ROUNDS: Final = 9
N_SHARDS, SHARD, BEGUN = 24, 200, 4
N_PIECES: Final = 200
MILLION: Final = 1_000_000
POOL: Final = 10
"""Shards of 10,000 texts drawn from real scores; each is merged ten times."""
LARGE_SHARD: Final = 100_000
PLANNED: Final = 10**9
N_GPUS: Final = 64
BASE_CELLS: Final = 12 * 12 * len(ROLES)


@dataclass(frozen=True, kw_only=True)
class Costs:
    """Seconds a text, and bytes."""

    forward: float
    whole: float
    without_parser: float
    parsing: float
    bytes_per_text: float
    statistics_bytes: float
    ray_piece: float


def main() -> None:
    material.print_machine()
    gc.set_threshold(GARBAGE_AFTER, *gc.get_threshold()[1:])  # as in the commands that are measured
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        costs = print_against_forward(folder)
        print_two_processes(folder)
        ray_piece = print_engines(costs)
        print_million(folder)
        print_highest(folder)
        print_plan(replace(costs, ray_piece=ray_piece))


def planned(folder: Path, n_texts: int, shard_size: int, *, parses: bool = True) -> Manifest:
    """A corpus of made sentences under the bundled checkpoint."""
    folder.mkdir(parents=True)
    (folder / "texts.txt").write_text("\n".join(sentences(n_texts)) + "\n")
    settings = CorpusSettings(parses=parses)
    files = material.bundled("cpu").files
    plan = corpus_plan(files, settings, str(folder / "texts.txt"), shard_size=shard_size)
    return write_plan(folder / "results", plan, Journal(None))


def planned_on_trees(folder: Path, texts: Path, n_texts: int) -> Manifest:
    """A corpus of texts that are parsed beforehand, under the bundled checkpoint."""
    parse_corpus(folder / "parsed", str(texts), None, partial(run_local, n_workers=1), Journal(None), n_texts)
    files = material.bundled("cpu").files
    plan = corpus_plan(files, CorpusSettings(), str(folder / "parsed"), shard_size=n_texts)
    return write_plan(folder / "results", plan, Journal(None))


def print_against_forward(folder: Path) -> Costs:
    """One process: a whole shard, from texts to files, against the model's output over all texts in sorted batches."""
    print("\nA shard, disk included, against the bare forward (SDPA): texts per second of the processor")
    found = {}
    for name, checkpoint, n in (
        ("bundled", material.bundled("cpu"), N_BUNDLED),
        ("BERT-base's shape", material.bert_base("cpu"), N_BASE),
    ):
        sdpa = material.with_attention(checkpoint, "sdpa")
        manifests = {parses: planned(folder / f"{name} {parses}", n, n, parses=parses) for parses in (True, False)}
        beforehand = planned_on_trees(folder / f"{name} parsed", folder / f"{name} True" / "texts.txt", n)
        texts = [each.text for each in read_texts(folder / f"{name} True" / "results" / "texts" / "000000.parquet")]
        by_place, _ = prepare_all(checkpoint, texts, material.SETTINGS, "skip")
        prepared = list(by_place.values())
        batches = material.planned(prepared, "cpu")
        contestants: dict[str, Callable[[], object]] = {
            "bare forward": partial(material.bare, checkpoint, sdpa, batches),
            "corpus run": partial(score_first, checkpoint, folder / f"{name} True", manifests[True]),
            "corpus run, parsed before": partial(score_first, checkpoint, folder / f"{name} parsed", beforehand),
            "corpus run --no-parser": partial(score_first, checkpoint, folder / f"{name} False", manifests[False]),
            "  of it, the parser": partial(with_relations, prepared, texts),
        }
        rounds = processor_seconds(list(contestants.values()))
        print_shares(name, n, list(contestants), rounds)
        found[name] = (np.median(rounds, axis=1) / n).tolist()
    results = folder / "bundled True" / "results"
    per_text = sum(each.stat().st_size for each in (results / "scores").iterdir()) / N_BUNDLED
    n_cells = 72 * len(ROLES)
    in_statistics = next((results / "statistics").iterdir()).stat().st_size
    forward, whole, _, without, parsing = found["BERT-base's shape"]
    return Costs(
        forward=forward,
        whole=whole,
        without_parser=without,
        parsing=parsing,
        bytes_per_text=per_text * BASE_CELLS / n_cells,
        statistics_bytes=in_statistics * BASE_CELLS / n_cells,
        ray_piece=0,
    )


def print_shares(name: str, n: int, contestants: Sequence[str], rounds: np.ndarray) -> None:
    """Texts a second of each, and as a share of the first, the bare forward, of the same round.

    The processor itself is faster at times.
    """
    shares = np.quantile(rounds[:1] / rounds, (0.5, 0.25, 0.75), axis=1).T
    for what, seconds, (share, low, high) in zip(contestants, np.median(rounds, axis=1), shares, strict=True):
        middle = f"(middle half of the rounds: {low:.2f} to {high:.2f})"
        of_forward = "" if what == contestants[0] else f"{share:>8.2f}  {middle}"
        print(f"{name:<20}{what:<26}{n / seconds:>8.1f}{of_forward}", flush=True)


def processor_seconds(contestants: Sequence[Callable[[], object]]) -> np.ndarray:
    """Seconds of the processor that each takes in each round, in turn: others on the machine count for nothing."""
    rounds: list[list[float]] = []
    for _ in range(1 + ROUNDS):
        rounds.append([])
        for contestant in contestants:
            start = time.process_time()
            contestant()
            rounds[-1].append(time.process_time() - start)
    return np.array(rounds[1:]).T  # the first round warms up


def score_first(checkpoint: Checkpoint, folder: Path, manifest: Manifest) -> None:
    score_and_write(checkpoint, folder / "results", manifest, manifest.shards[0])


@dataclass(frozen=True)
class Moment:
    """Time at which a number of shards was done."""

    n_done: int
    clock: float
    processor: float
    """Seconds of all processes so far."""


def print_two_processes(folder: Path) -> None:
    """Without the first shards, in which one process may still be beginning. Others on the machine count for nothing
    in the time of the processor, which holds all processes: the engine's own, too."""
    print("\nTwo processes against one, and two workers of Ray, once they have begun")
    print(f"{'':<20}{'texts a second':>16}{'':>8}{'ms of the processor a text':>28}")
    engines = {
        "1 process": partial(run_local, n_workers=1),
        "2 processes": partial(run_local, n_workers=2),
        "2 workers of Ray": partial(run_on_ray, n_workers=2),
    }
    rates: dict[str, float] = {}
    for name, engine in engines.items():
        manifest = planned(folder / name, N_SHARDS * SHARD, SHARD, parses=False)
        moments: list[Moment] = []
        run(folder / name / "results", manifest, noted(engine, moments), Journal(None))
        first, *_, last = [moment for moment in moments if moment.n_done >= BEGUN]
        n_texts = (last.n_done - first.n_done) * SHARD
        rates[name] = n_texts / (last.clock - first.clock)
        each = 1000 * (last.processor - first.processor) / n_texts
        print(f"{name:<20}{rates[name]:>16.0f}{rates[name] / rates['1 process']:>8.2f}{each:>28.2f}", flush=True)


def noted(engine: Executor, moments: list[Moment]) -> Executor:
    """The engine, which also notes when each piece was done."""

    def run_noted(begin: Callable[[], Do[Any, Any]], pieces: Sequence[Any]) -> Iterator[TaskOutcome[Any]]:
        for outcome in engine(begin, pieces):
            moments.append(Moment(len(moments) + 1, time.perf_counter(), processor_of_all()))
            yield outcome

    return run_noted


def processor_of_all() -> float:
    """Seconds of the processor that this process and all that it started, and they in turn, have taken."""
    this = psutil.Process()
    return sum(sum(each.cpu_times()[:2]) for each in (this, *this.children(recursive=True)))


def begin_nothing() -> Callable[[int], int]:
    return abs


def print_engines(costs: Costs) -> float:
    """What an engine adds to a piece of work, and to a shard of 10,000 texts of BERT-base's shape."""
    print("\nWhat the engines add: seconds to begin with two workers, and milliseconds a piece of work")
    each = {}
    for name, engine in (("local", partial(run_local, n_workers=2)), ("ray", partial(run_on_ray, n_workers=2))):
        start = time.perf_counter()
        moments = [time.perf_counter() for _ in engine(begin_nothing, range(N_PIECES))]
        each[name] = (moments[-1] - moments[0]) / (N_PIECES - 1)
        print(f"{name:<8}{moments[0] - start:>8.1f} s{1000 * each[name]:>8.2f} ms", flush=True)
    shard = 10_000 * costs.whole
    print(f"Ray above local at shards of 10,000 ({shard:,.0f} s): {(each['ray'] - each['local']) / shard:.5%}")
    return each["ray"]


def resampled(folder: Path, n: int, seed: int) -> dict[str, np.ndarray]:
    """Scores of so many texts, drawn from those of the real ones."""
    scores, uniform = read_role_scores(next((folder / "bundled True" / "results" / "scores").iterdir()), ROLES)
    rows = np.random.default_rng(seed).integers(0, len(scores), n)
    return {"roles": scores[rows], UNIFORM: uniform[rows]}


def print_million(folder: Path) -> None:
    """One million texts, made of real scores by resampling, opened to a drawn grid in processes of their own.

    Cells are those of BERT-base's shape: 144 heads x 11 roles, of which the grid draws the 4 coarse ones, 576 cells.
    The bundled checkpoint has half as many layers, so each stands for two.
    """
    settings = CorpusSettings().analysis_settings(ROLE_ANALYSIS)
    everything = {(EVERYTHING,): np.arange(10_000)}
    pool = []
    for seed in range(POOL):
        values = {name: np.repeat(each, 2, axis=2) for name, each in resampled(folder, 10_000, seed).items()}
        values["roles greatest"] = np.full_like(values[UNIFORM], 20)
        series = dict(ROLE_REDUCTION.series(values, settings))
        series["tokens"] = replace(series[UNIFORM], values=np.full(10_000, 20.0))
        pool.append(statistics_of(series, everything))
    total = reduce(merged_statistics, pool * (MILLION // 10_000 // POOL))
    results = folder / "million"
    results.mkdir()
    manifest = planned(folder / "of the million", 10, 10)
    left_out = {"n_texts": MILLION, "n_too_long": 0, "n_without_token": 0}
    write_statistics(results / STATISTICS, total, manifest.facts() | left_out)
    n_bytes = (results / STATISTICS).stat().st_size
    for what in ("grid", "page"):
        told = in_own_process("benchmarks.corpora.corpus_opening", what, str(results))
        if what == "grid":
            print(f"\n{told['texts']:,} texts x {told['cells']:,} cells, {n_bytes / 1e6:.1f} MB, to a drawn grid:")
        clock, processor = told["to open"]
        print(
            f"the {what} alone" if what == "grid" else "the page Roles, first visit",
            f"{clock:.2f} s (goal 1.0), {processor:.2f} s of the processor, after {told['to import'][1]:.2f} s of "
            f"imports; {told['peak'] / 1e6:.0f} MB with all packages (goal 300)",
            *([f"and {', '.join(told['heavy'])} loaded"] if told["heavy"] else []),
        )


def print_highest(folder: Path) -> None:
    """The top 20 texts of a head in a large shard: one column, then the rows of the texts."""
    columns = ROLE_REDUCTION.columns(CorpusSettings().analysis_settings(ROLE_ANALYSIS))
    manifest = planned(folder / "large", 1_000, 1_000)
    results = folder / "large" / "results"
    path, texts = score_path(results, manifest.shards[0]), results / "texts" / "000000.parquet"
    write_scores(path, resampled(folder, LARGE_SHARD, 0), columns)
    write_texts(texts, read_texts(texts) * (LARGE_SHARD // 1_000))
    seconds = []
    for layer in range(5):
        start = time.perf_counter()
        rows, _ = highest(path, "local", (layer, 2), 20)
        read_texts(texts, rows.tolist())
        seconds.append(time.perf_counter() - start)
    print(
        f"\nTop 20 of a head in a shard of {LARGE_SHARD:,} texts ({path.stat().st_size / 1e6:.0f} MB): "
        f"{np.median(seconds):.2f} s (goal 1)",
        flush=True,
    )


def print_plan(costs: Costs) -> None:
    """10^9 texts on 64 GPUs, on paper. The processor's share of the work is measured; that of a GPU is not."""
    shard = 100_000
    n_shards = PLANNED // shard
    beside = costs.whole - costs.forward
    without = max(costs.without_parser - costs.forward, 1e-5)
    hours = PLANNED / N_GPUS / 3600
    strata = 10
    in_statistics = n_shards * costs.statistics_bytes * strata
    rows = [
        ("texts, and cells of BERT-base's shape", f"{PLANNED:,} x {BASE_CELLS:,}"),
        ("shards of 100,000", f"{n_shards:,}"),
        ("forward on one core of this machine, all 64 x 1 core (measured)", f"{costs.forward * hours / 24:,.0f} days"),
        ("beside the forward, one core a GPU: parser, sieves, statistics, disk (measured)", f"{beside * hours:,.0f} h"),
        ("the same without the parser", f"{without * hours:,.0f} h"),
        ("the same with 8 processes a GPU, without the parser", f"{without * hours / 8:,.0f} h"),
        ("scores, zstd", f"{PLANNED * costs.bytes_per_text / 1e12:,.1f} TB"),
        (
            f"statistics of all shards, {strata} parts each",
            f"{in_statistics / 1e12:,.2f} TB",
        ),
        ("merged statistics", f"{costs.statistics_bytes * strata / 1e6:,.0f} MB"),
        ("object store: a shard's name and its record, both ways", f"{n_shards * 1e3 / 1e6:,.0f} MB"),
        ("Ray's scheduling of all pieces (measured)", f"{n_shards * costs.ray_piece / 60:,.1f} min"),
        ("manifest.json", f"{n_shards * 130 / 1e6:,.1f} MB"),
    ]
    print(f"\nA plan for {PLANNED:,} texts on {N_GPUS} GPUs; the GPUs' own time is not measured here")
    for what, much in rows:
        print(f"{what:<84}{much:>16}")
    print("What breaks first: (1) the parser and the sieves, which keep a GPU waiting: several processes a GPU, or")
    print("--no-parser; (2) the plan, which one process reads and writes; (3) the merge, which reads the statistics of")
    print("all shards in order on one machine; (4) the check of all hashes when a run goes on, which reads all scores.")


if __name__ == "__main__":
    main()
