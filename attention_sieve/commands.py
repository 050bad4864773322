"""The commands of the command line, in the order of its help."""

from typing import Any

from attention_sieve.cache.store import command as store
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.analysis_command import add_command
from attention_sieve.core.checkpoints import sample_decoder
from attention_sieve.core.claims import command as claims
from attention_sieve.core.comparison import command as comparison
from attention_sieve.core.corpus import command as corpus
from attention_sieve.core.finetuning import command as finetuning
from attention_sieve.core.importance import next_token
from attention_sieve.core.importance.gates import command as gates
from attention_sieve.core.importance.pruning import command as pruning
from attention_sieve.core.importance.removal import command as removal
from attention_sieve.core.knowledge import command as knowledge
from attention_sieve.core.knowledge import tasks_command as making_tasks
from attention_sieve.core.knowledge.erasure import command as erasure
from attention_sieve.core.knowledge.trials import command as trials
from attention_sieve.core.laboratory import command as laboratory
from attention_sieve.core.maps import command as maps
from attention_sieve.core.pairs import command as pairs
from attention_sieve.core.probe_texts import command as probe_texts
from attention_sieve.core.roles import command as roles
from attention_sieve.core.tree_probes import command as tree_probes
from attention_sieve.dashboard.card import command as card
from attention_sieve.dashboard.saved_page import command as saved_page


def add_commands(commands: Any) -> None:
    """Add all commands to the command line's subparsers."""
    roles.add_commands(commands)
    for analysis in ANALYSES:
        if analysis.usage.command is not None:
            add_command(commands, analysis)
    for module in (
        comparison,
        pairs,
        tree_probes,
        maps,
        removal,
        gates,
        probe_texts,
        claims,
        sample_decoder,
        laboratory,
        pruning,
        next_token,
        erasure,
        store,
        card,
    ):
        module.add_command(commands)
    for room in (making_tasks, knowledge, trials, corpus, finetuning, saved_page):
        room.add_commands(commands)
