"""How roles are asked for: by their names, or by a file with one of one's own."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.errors import AnalysisError, shortened
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.roles import DECODER_ROLES, FURTHER_ROLES, ROLES, asked_roles, known_roles
from attention_sieve.core.roles.rules import file_help, read_role
from attention_sieve.core.texts.text import decoded, read_bytes
from attention_sieve.core.usage import Example, Option, Usage, listed


def written_in(path: str | Path) -> str:
    """Name of the role that a file holds.

    Raises: AnalysisError that begins with the file.
    """
    content = read_bytes(Path(path))
    try:
        return read_role(decoded(content)).id
    except AnalysisError as error:
        raise AnalysisError(f"{shortened(str(path))}: {error}") from error


def role_options(for_decoders: str = "") -> Mapping[str, Option]:
    """The options that choose the roles; `for_decoders` says what is different for them."""
    return {
        "roles": Option(
            sentence=f"roles to score, separated by commas, or all, which adds {', '.join(FURTHER_ROLES)}; "
            f"default: {', '.join(ROLES)}{for_decoders}",
            kind=lambda names: asked_roles([name.strip() for name in names.split(",")]),
            given=lambda names: asked_roles(listed("roles", names, str, 'names of roles, such as "local"')),
            metavar="NAMES",
        ),
        "role": Option(
            sentence=f"a role that you have written, to score beside the others; give it again for more: {file_help()}",
            kind=written_in,
            given=lambda paths: [
                written_in(Path(path))
                for path in listed("role", paths, str | PurePath, "files of TOML, such as mine.toml")
            ],
            metavar="FILE",
            is_repeated=True,
        ),
    }


ROLE_OPTIONS: Final = role_options(f"; for decoders also {', '.join(DECODER_ROLES)}")


def asked_for(options: Namespace, usual: tuple[str, ...] = ROLES) -> tuple[str, ...]:
    """The roles that options ask for, the usual ones if they name none, and written ones."""
    return known_roles((*(usual if options.roles is None else options.roles), *(options.role or ())))


def usual_settings(options: Namespace, files: CheckpointFiles) -> RoleSettings:
    """The usual settings for the roles and the scale that options ask for: of a decoder also its own roles, and the
    usual tau of the scale."""
    roles = asked_for(options, known_roles((*ROLES, *(DECODER_ROLES if files.is_decoder else ()))))
    return RoleSettings(ScoreSettings(roles=roles), Criterion.usual(options.scale or ScoreSettings.scale))


ROLE_USAGE: Final = Usage(
    command=None,
    options=ROLE_OPTIONS,
    usual=lambda options: usual_settings(options, options.files),
    example=Example(keywords="tau=2"),
)
