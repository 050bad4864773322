"""Movie review snippets with human ratings, downloaded as a package: the labelled texts of the sample checkpoint.

Source: Hutto & Gilbert 2014, VADER (ICWSM), whose ground truth the source distribution of vaderSentiment 2.5 (MIT)
carries: 10,605 snippets from reviews on Rotten Tomatoes, each with the mean of 20 ratings from -4 to 4.
"""

import csv
import hashlib
import io
import random
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.sample_decoder import fetch_package
from attention_sieve.core.errors import AnalysisError

REQUIREMENT: Final = "vaderSentiment==2.5"
ARCHIVE: Final = "vaderSentiment-2.5.tar.gz"
ARCHIVE_SHA256: Final = "b960c954831f5ca58afee61780cc04ed48e551b91e783bfcbfb2c18bb8081a84"
MEMBERS: Final = (
    "vaderSentiment-2.5/additional_resources/hutto_ICWSM_2014.tar.gz",
    "hutto_ICWSM_2014/movieReviewSnippets_GroundTruth.txt",
)
"""An archive in the archive, and the file in the inner one."""
MAX_MEMBER_BYTES: Final = 10_000_000
LEAST_RATING: Final = 0.5
"""Minimum distance from 0 (neutral) for a snippet to count as negative or positive."""
N_HELD_OUT, N_TRAINING = 500, 2_000
"""Numbers of snippets, half of them positive."""
SEED: Final = 5
COLUMNS: Final = ("sentence", "label")
TRAINING_FILE, HELD_OUT_FILE = "movie-reviews-training.csv", "movie-reviews-held-out.csv"

Labelled = tuple[str, str]
"""Snippet and label."""


def movie_reviews(folder: Path) -> tuple[Path, Path]:
    """Tables of training and validation snippets, created in a folder if they do not exist yet.

    Raises: AnalysisError if the package cannot be downloaded or differs from the published one.
    """
    paths = folder / TRAINING_FILE, folder / HELD_OUT_FILE
    if not all(path.is_file() for path in paths):
        for path, snippets in zip(paths, split(parse(_ground_truth(folder)))):
            temporary = path.with_suffix(".part")
            with temporary.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows([COLUMNS, *snippets])
            temporary.replace(path)
    return paths


def movie_snippets(folder: Path) -> tuple[str, ...]:
    """All snippets, whatever their ratings, of a package that is downloaded if it is missing; duplicates are dropped.

    Raises: AnalysisError if the package cannot be downloaded or differs from the published one.
    """
    return tuple(dict.fromkeys(text for _, text in _rated(_ground_truth(folder)) if text))


def check_archive(content: bytes) -> None:
    """Raise if the archive differs from the published one.

    Raises: AnalysisError with both digests.
    """
    digest = hashlib.sha256(content).hexdigest()
    if digest != ARCHIVE_SHA256:
        raise AnalysisError(
            f"{ARCHIVE} has SHA-256 {digest}, expected {ARCHIVE_SHA256}. Remove it, and check where packages come from."
        )


def read_member(archive: bytes, name: str) -> bytes:
    """One file of a .tar.gz, read in memory; nothing is extracted to paths named by the archive.

    Raises: AnalysisError for a broken archive, and for a member that is missing, not a plain file, or too large.
    """
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as tar:
            member = tar.getmember(name)
            file = tar.extractfile(member) if member.isreg() and member.size <= MAX_MEMBER_BYTES else None
            if file is None:
                raise AnalysisError(
                    f"{name} is not a regular file of at most {MAX_MEMBER_BYTES:,} bytes ({member.size:,}). "
                    f"Fetch {ARCHIVE} again."
                )
            return file.read()
    except KeyError:
        raise AnalysisError(f"The archive holds no {name}. Fetch {ARCHIVE} again.") from None
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        raise AnalysisError(f"The archive with {name} is broken ({error}). Fetch {ARCHIVE} again.") from None


def parse(content: bytes) -> tuple[Labelled, ...]:
    """Snippets with a clear rating, labelled negative or positive; the first of equal snippets is kept.

    Raises: AnalysisError with the line that is not a number, a rating and a text.
    """
    labels: dict[str, str] = {}
    for rating, text in _rated(content):
        if text and abs(rating) >= LEAST_RATING:
            labels.setdefault(text, "positive" if rating > 0 else "negative")
    return tuple(labels.items())


def _rated(content: bytes) -> Iterator[tuple[float, str]]:
    """Rating and text of each snippet."""
    for line, row in enumerate(content.decode("utf-8", errors="replace").splitlines(), start=1):
        cells = row.split("\t")
        try:
            _, rating, text = cells[0], float(cells[1]), cells[2].strip()
        except (IndexError, ValueError):
            raise AnalysisError(
                f"Line {line:,} of the reviews is not a number, rating and text: {row[:60]!r}."
            ) from None
        yield rating, text


def split(
    snippets: Sequence[Labelled], n_training: int = N_TRAINING, n_held_out: int = N_HELD_OUT
) -> tuple[list[Labelled], list[Labelled]]:
    """Training and validation snippets, each half negative and half positive, in a fixed random order.

    Raises: AnalysisError if there are too few.
    """
    chance = random.Random(SEED)
    training: list[Labelled] = []
    held_out: list[Labelled] = []
    for label in ("negative", "positive"):
        labelled = [snippet for snippet in snippets if snippet[1] == label]
        if len(labelled) < (n_training + n_held_out) // 2:
            raise AnalysisError(f"The reviews hold {len(labelled):,} {label} snippets, too few to train on.")
        chance.shuffle(labelled)
        held_out += labelled[: n_held_out // 2]
        training += labelled[n_held_out // 2 : (n_held_out + n_training) // 2]
    chance.shuffle(training)
    chance.shuffle(held_out)
    return training, held_out


def _ground_truth(folder: Path) -> bytes:
    """The file of snippets and ratings, from the package's source distribution, whose published digest pip verifies."""
    path = folder / ARCHIVE
    if not path.is_file():
        fetch_package(REQUIREMENT, ARCHIVE_SHA256, folder, "--no-binary", "vaderSentiment")
    content = path.read_bytes()
    check_archive(content)
    for member in MEMBERS:
        content = read_member(content, member)
    return content
