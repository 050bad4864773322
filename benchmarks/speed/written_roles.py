"""Processor time of scoring the samples with four written roles of each form (sets of keys, bands, pairs), alone and
together, over that of scoring the usual roles without them; and with three built-in roles in their place.

Once with all texts parsed anew, as in a first pass, and once with the parses that are kept. The usual roles have
relations, so that both pay for the parser; the last row is without these, and without a parser.
"""

import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import chain

from attention_sieve.cache.memory import Memory
from attention_sieve.core import analysis
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.rules import read_role
from attention_sieve.core.texts.parsing import keep_parses_in
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared import material

ROUNDS = 7
FORMS = {
    "keys": ('kinds = "separator"', 'words = ["the", "a"]', 'kinds = "capitalised"', "positions = [0, 1, 2]"),
    "bands": ("offset = -1", "offset = 1", "offset = [-2, 2]", "offset = [-8, -4]"),
    "pairs": (
        'relative = "head"\nrelations = "nsubj"',
        'relative = "dependent"\nrelations = ["amod", "det"]',
        'relative = "earlier copy"',
        'offset = [-4, -1]\nwords = ["the", "a"]',
    ),
}
"""Conditions on the tokens that are looked at."""
TAGGED = (
    'pattern = [{POS = "VERB"}]',
    'pattern = [{TAG = {REGEX = "^N"}}]',
    'relative = "same lemma"',
    'entities = "any"',
)


def named(form: str, conditions: tuple[str, ...]) -> tuple[str, ...]:
    head = 'role = 1\nletter = "G"\ncolour = "#AA3377"\n'
    return tuple(
        read_role(f'{head}name = "{form} {number}"\n[to]\n{each}').id for number, each in enumerate(conditions)
    )


def main() -> None:
    material.print_machine()
    checkpoint, texts = material.bundled(), read_sample("both")
    roles = {form: named(form, conditions) for form, conditions in FORMS.items()}
    roles |= {"all of these": tuple(chain.from_iterable(roles.values()))}
    roles |= {"built in": ("previous", "duplicate", "template"), "of a tagger": named("tagged", TAGGED[:3])}
    roles |= {"of entities": named("named", TAGGED[3:]), "of both": named("tagged", TAGGED)}
    plain = tuple(role for role in ROLES if not role.startswith("syntactic"))
    questions = {"none": SCORES, **{form: scores_question((*ROLES, *names)) for form, names in roles.items()}}
    questions |= {"no parser": scores_question(plain)}
    parts = {form: partial(analysis.results, checkpoint, question, texts) for form, question in questions.items()}
    for keeps in (False, True):
        times = rounds(parts, keeps)
        seconds, how = statistics.median(one["none"] for one in times), "with kept parses" if keeps else "parsed anew"
        print(f"\n{len(texts)} texts, {how}; the usual roles alone take {seconds:.2f} s of a processor")
        for form in parts:
            ratio = statistics.median(one[form] / one["none"] for one in times)
            print(f"with {form:<16}{ratio:>8.3f}", flush=True)


def rounds(parts: dict[str, Callable[[], object]], keeps: bool) -> list[dict[str, float]]:
    """Seconds of a processor of each part, in some rounds, since the machine may be slower in one than in the next."""
    times, parses = list[dict[str, float]](), Memory()
    keep_parses_in(parses)
    for _ in range(1 + ROUNDS):
        times.append({})
        for form, part in parts.items():
            if not keeps:
                parses.forget(float("inf"))
            start = time.process_time()
            part()
            times[-1][form] = time.process_time() - start
    return times[1:]


if __name__ == "__main__":
    main()
