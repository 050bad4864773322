"""What `make app` prepares beside the dashboard for the page Knowledge, a command at a call: the sample tasks, and then
what the heads of the bundled checkpoint tell of some of them, so that the page opens on a finding."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace

from attention_sieve.core.checkpoints.find import BUNDLED
from attention_sieve.core.knowledge.trials.result import STAGES
from attention_sieve.dashboard import runs
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.views.asking import POLICIES
from attention_sieve.dashboard.views.knowledge.numbers import SEED_OF_WEIGHTS
from attention_sieve.dashboard.views.knowledge.runs import trials_command
from attention_sieve.dashboard.views.knowledge.task_files import TELLING, sample_tasks


def next_command() -> Sequence[str]:
    """The command that makes the sample tasks or, once they are there, the one that probes TELLING tasks as the page
    does; empty where a reader has begun the same on the page.

    Raises: AnalysisError where the table of the run cannot be written.
    """
    tasks = sample_tasks()
    folder = KINDS["trials" if tasks else "sample-tasks"].folder()
    if runs.is_on(folder):
        return ()
    if not tasks:
        return ("sample-tasks", f"--journal={folder}")
    too_long = next(iter(POLICIES.values()))
    trials = [
        replace(task.trial(BUNDLED), too_long=too_long, random_weights=seed)
        for task in tasks
        if task.name in TELLING
        for seed in (None, SEED_OF_WEIGHTS)
    ]
    return trials_command(folder, trials, STAGES[:1])


if __name__ == "__main__" and (command := next_command()):
    os.execv(sys.executable, [sys.executable, "-m", "attention_sieve", *command])
