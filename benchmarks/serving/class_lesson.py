"""A class in two lessons: how long a step takes when everybody guesses at once, and whether the teacher sees them all.

Every student is a page of the real dashboard without a browser. All open the same step by a link with the class's
code, guess a number, go back and guess another one: the second takes the place of the first. Waiting ends when the
whole page is there. Everybody acts at the same instant, the worst case; then within five seconds, as when a teacher
asks for a guess; then at their own pace. A sentence that the teacher types before has loaded the checkpoint.
"""

import argparse
import asyncio
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.checkpoints.find import BUNDLED
from attention_sieve.dashboard.public import CHECKPOINTS, OWN_EXAMPLES, PUBLIC
from benchmarks.shared.server import prepare, serve
from benchmarks.shared.visitors import Answer, Visitor, visitor

GOAL: Final = 1.0
"""Maximum number of seconds of a step for 95 in 100."""
STUDENTS: Final = 32
STEPS: Final = (("", 2, 3), ("laboratory", 7, 4))
"""Page, lesson and step at which a number is guessed: how many heads rest, and what copying loses without one."""
AT_ONCE: Final = (0.0, 0.0)
PACES: Final = {"in the same instant": AT_ONCE, "within five seconds": (0.0, 5.0), "at their own pace": (5.0, 15.0)}
"""Seconds before each act, between these two: a step is read in about ten."""


@dataclass
class Lesson:
    """Measurements of a lesson."""

    waits: list[float] = field(default_factory=list)
    """Seconds of each step."""
    wrong: list[str] = field(default_factory=list)
    """Errors on the pages, and counts that are not those of the guesses."""


async def lesson(
    address: str, students: int, asked: tuple[str, int, int], pace: tuple[float, float] = AT_ONCE
) -> Lesson:
    """The lesson.

    Args:
        address: of the server.
        students: how many.
        asked: one of STEPS.
        pace: seconds that everybody reads before each act, between these two.
    """
    found, (page, number_of_lesson, step) = Lesson(), asked
    link = {"lesson": str(number_of_lesson), "step": str(step)}
    async with AsyncExitStack() as stack:
        teacher, *pupils = [await stack.enter_async_context(visitor(address)) for _ in range(students + 1)]
        note(found, await teacher.open("lessons"))
        note(found, await teacher.click("make code"))
        code = re.findall("class=([A-Z0-9]+)", teacher.link)[-1]
        for pupil in pupils:
            note(found, await pupil.open(page, **link, **{"class": code}))
        await asyncio.gather(*(twice(found, pupil, number, pace) for number, pupil in enumerate(pupils)))
        answer = link | {"step": str(step + 1), "present": "1", "class": code}
        last = await (await stack.enter_async_context(visitor(address))).open(page, **answer)
        note(found, last)
        counts = re.findall(r"\d+: \d+", " ".join(last.pictures))
        found.wrong += differences(counts, Counter(number % 4 for number in range(students)))
    return found


async def twice(found: Lesson, pupil: Visitor, number: int, pace: tuple[float, float]) -> None:
    """Guess one number, go back and guess another one."""
    seconds = random.Random(number)
    for button, guess in (("lesson guess it", number % 5), ("lesson back", None), ("lesson guess it", number % 4)):
        await asyncio.sleep(seconds.uniform(*pace))
        if guess is not None:
            pupil.fill("guessed number", guess)
        note(found, await pupil.click(button), is_step=True)


def note(found: Lesson, answer: Answer, *, is_step: bool = False) -> None:
    """Keep what a page answered."""
    found.wrong += answer.complaints
    if is_step:
        found.waits.append(answer.to_end)


def differences(counts: Sequence[str], guessed: Mapping[int, int]) -> list[str]:
    """What the page shows of the class, against what was guessed."""
    shown = {int(number): int(count) for number, count in (each.split(": ") for each in counts)}
    return [] if shown == guessed else [f"The tally shows {shown}; guessed were {dict(guessed)}."]


async def try_a_sentence(address: str) -> None:
    """As the teacher before the class comes."""
    async with visitor(address) as teacher:
        await teacher.open()
        await teacher.type("The tired nurse closed the heavy door.")


def train_laboratory(folder: Path) -> None:
    """What lesson 7 shows, as `make class` makes it."""
    code = "from attention_sieve.core.laboratory.command import sample_laboratory as make; make()"
    environment = os.environ | {"ATTENTION_SIEVE_CACHE": str(folder)}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, capture_output=True)


def main() -> None:
    """Measure, and end with an error where anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--students", type=int, default=STUDENTS)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        train_laboratory(Path(folder))
        with serve(Path(folder), **{PUBLIC: "1", CHECKPOINTS: f"{BUNDLED}{os.pathsep}{OWN_EXAMPLES}"}) as server:
            asyncio.run(try_a_sentence(server.address))
            lessons = {
                f"lesson {step[1]}, {name}": asyncio.run(lesson(server.address, asked.students, step, pace))
                for step in STEPS
                for name, pace in PACES.items()
            }
            tracebacks = ["a traceback in the log"] * server.tracebacks()
    wrong = [complaint for found in lessons.values() for complaint in found.wrong] + tracebacks
    print(f"{asked.students} students, {len(wrong)} wrong; seconds of a step, goal {GOAL} for 95 in 100")
    for name, found in lessons.items():
        median, p95 = statistics.median(found.waits), float(np.quantile(found.waits, 0.95))
        print(f"{name:<30} median {median:.2f}, p95 {p95:.2f}, worst {max(found.waits):.2f}, {len(found.waits)} steps")
    print("\n".join(wrong[:10]))
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
