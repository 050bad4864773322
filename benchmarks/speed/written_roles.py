"""Time of scoring the samples with four written roles of each form (sets of keys, bands, pairs), alone and together,
over the time of scoring the usual roles without them; and with three built-in roles in their place."""

from collections.abc import Callable
from functools import partial
from itertools import chain

from attention_sieve.core import analysis
from attention_sieve.core.roles.question import SCORES, scores_question
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.rules import read_role
from attention_sieve.dashboard.samples import read_sample
from benchmarks.shared import material

SECONDS = 60
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
    roles |= {"built in": ("previous", "duplicate", "template"), "of a tagger": named("tagged", TAGGED)}
    parts: dict[str, Callable[[], object]] = {"": partial(analysis.results, checkpoint, SCORES, texts)}
    for form, names in roles.items():
        parts[form] = partial(analysis.results, checkpoint, scores_question((*ROLES, *names)), texts)
    seconds, ratios = material.median_ratios(list(parts.values()), SECONDS)
    print(f"{len(texts)} texts of the samples; the usual roles alone take {seconds:.2f} s")
    for form, ratio in zip(parts, ratios, strict=True):
        print(f"with {form or 'none':<16}{ratio:>8.3f}", flush=True)


if __name__ == "__main__":
    main()
