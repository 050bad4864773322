"""The command `python -m attention_sieve claim`: does a claim about heads hold?"""

import argparse
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.claims.claim import EXAMPLE, Claim, claim_of, scores_in
from attention_sieve.core.claims.judge import ClaimFinding
from attention_sieve.core.claims.places import PLACE_COLUMNS, PROBE_TEXTS, Place, TestedClaim, place_of, tested
from attention_sieve.core.claims.probe import PROBES, ClaimSettings
from attention_sieve.core.claims.tables import claim_facts
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    checkpoint_facts,
    facts_of_texts,
    loaded,
    progress_bar,
    read_texts,
    reading_of,
    write_table,
)
from attention_sieve.core.errors import AnalysisError, quoted, shortened
from attention_sieve.core.options import (
    TEXTS_HELP,
    add_checkpoint_options,
    add_output_option,
    add_parser_options,
    add_random_weights_option,
    add_resume_option,
    add_settings_options,
    add_texts_options,
    settings_of,
)
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.roles.rules import PREFIX
from attention_sieve.core.roles.usage import written_in
from attention_sieve.core.texts.text import SUFFIXES, Text, decoded, read_bytes
from attention_sieve.core.usage import column_list

SCORES: Final = ".json"


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser: argparse.ArgumentParser = commands.add_parser(
        "claim",
        help="test a claim about heads: does each that it names have the role?",
        description=f"{inspect.cleandoc(claim.__doc__ or '')}{column_list('Columns', PLACE_COLUMNS)}",
    )
    parser.add_argument(
        "claim",
        help=f'claim, such as "{EXAMPLE}", or a .json file of scores by head, such as {{"16-19": 0.8}}; of a list of '
        "scores the mean counts",
    )
    parser.add_argument(
        "--role",
        type=str,
        metavar="NAME",
        help="role of the claim, or a file of TOML with one that you have written; default: what the claim names",
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_output_option(parser)
    add_resume_option(parser)
    add_texts_options(
        parser, f"{TEXTS_HELP}; default: probe texts, which there are for {', '.join(PROBES)}", required=False
    )
    add_parser_options(parser)
    add_settings_options(parser, ClaimSettings())
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="PLACE",
        help=f"another place in which to test the same claim, any number of times: a file of texts "
        f"({', '.join(SUFFIXES)}), with @ and the parser or the language of its texts where it is another one, such as "
        f'textes.txt@French; "{PROBE_TEXTS}"; or a checkpoint, on the same texts or on probe texts of its own',
    )
    parser.set_defaults(run=claim)


def claim(arguments: argparse.Namespace) -> None:
    """Test a claim about heads, such as "L16 H19, L11 H15 are retrieval heads"; write a row per head that it names.

    A head holds the role if its mean score is above tau, with p-values corrected over the heads of the claim, and above
    that with permuted keys. A head that seems to have it only where copies have a fixed period, or that looks at
    related words no more than at others at the same distance, has it only as a positional ruler. The mean of all named
    heads is compared with random sets of as many heads; of a file of scores, the ranking is compared with the measured
    one. The summary goes to standard error. To be a head of a role means to put at least half of the attention beyond
    chance there: shares above chance with tau 0.5, unless options say otherwise.
    """
    settings = claim_settings(arguments, read_claim(arguments.claim, arguments.role))
    own, others = arguments.texts, [_other(place, arguments) for place in arguments.also]
    texts = None if own is None else read_texts(own, arguments.text_columns, arguments.parser)
    check_output(arguments.output, TABLES, [own])
    checkpoint, pass_settings = loaded(arguments)

    def test(given: Sequence[Text] | None, on: Checkpoint, how: PassSettings) -> ClaimFinding:
        on.files.check_heads(how.kind, settings.claim.heads)
        read = partial(reading_of, on, how, too_long=arguments.too_long, answer=arguments.answer)
        return tested(settings, given, on, read, progress_bar)

    def test_in(other: _Other) -> ClaimFinding:
        if other.is_texts:
            return test(other.texts, checkpoint, pass_settings)
        return test(texts, *loaded(argparse.Namespace(**vars(arguments) | {"checkpoint": other.name})))

    name, texts_name = checkpoint.files.name, PROBE_TEXTS if own is None else own.name
    finding = test(texts, checkpoint, pass_settings)
    places = [Place(checkpoint=name, texts=texts_name, finding=finding)]
    for other in others:
        where = (name, other.name) if other.is_texts else (other.name, texts_name)
        places.append(place_of(*where, partial(test_in, other)))
    outcome = TestedClaim(first=finding, places=tuple(places))
    facts = checkpoint_facts(checkpoint, pass_settings) | facts_of_claim(finding, texts)
    write_table(arguments.output, outcome.table, facts)
    print(outcome.summary, file=sys.stderr)


@dataclass(frozen=True)
class _Other:
    """Another place of a claim: other texts in the same checkpoint, or the same ones in another checkpoint."""

    name: str
    is_texts: bool
    texts: tuple[Text, ...] | None = None
    """None for probe texts, and for those of the first place."""


def _other(place: str, arguments: argparse.Namespace) -> _Other:
    """Another place, as the option names it.

    Raises: TextError; CheckpointError; AnalysisError for a parser that is not installed.
    """
    if place == PROBE_TEXTS:
        return _Other(place, is_texts=True)
    path, _, parser = place.rpartition("@")
    if Path(path).suffix.lower() not in SUFFIXES:
        path, parser = place, arguments.parser
    if Path(path).suffix.lower() in SUFFIXES:
        texts = read_texts(Path(path), arguments.text_columns, parser)
        return _Other(Path(path).name, is_texts=True, texts=texts)
    find_checkpoint(place)  # raises before the work begins
    return _Other(place, is_texts=False)


def read_claim(claimed: str | Mapping[str, Any], role: str | None) -> Claim:
    """A claim from the options: a sentence, scores by head, or a .json file of them; and the role's name or file. The
    name of a written role, which pages put into commands, holds its rule.

    Raises: AnalysisError, of a file with its name.
    """
    if role is not None and role not in BY_NAME and not role.startswith(PREFIX):
        if Path(role).suffix.lower() != ".toml":
            raise AnalysisError(
                f"There is no role {quoted(role)}. The roles are {', '.join(BY_NAME)}; or give a .toml "
                "file with your own."
            )
        role = written_in(role)
    if not isinstance(claimed, str) or Path(claimed).suffix.lower() != SCORES:
        return claim_of(claimed, role)
    try:
        return claim_of(scores_in(decoded(read_bytes(Path(claimed)))), role)
    except AnalysisError as error:
        raise AnalysisError(f"{shortened(claimed)}: {error}") from None


def claim_settings(options: argparse.Namespace, made: Claim) -> ClaimSettings:
    """The settings of a claim that the options ask for; tau is the usual one of the scale."""
    usual = ClaimSettings()
    scores = settings_of(options, usual.role_settings.scores)
    role_settings = RoleSettings(scores, settings_of(options, Criterion.usual(scores.scale)))
    return replace(settings_of(options, usual), claim=made, role_settings=role_settings)


def facts_of_claim(finding: ClaimFinding, texts: Any) -> dict[str, str]:
    """Metadata of files on the claim and its texts; None for probe texts."""
    kind = PROBES.get(finding.claim.role, "")
    own = {"probe texts": f"{finding.settings.number} {kind}"} if texts is None else facts_of_texts(texts)
    return {**own, **claim_facts(finding)}
