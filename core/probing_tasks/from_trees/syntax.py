"""Syntactic tasks: depth of the tree, the relations below its root, and whether two words changed places."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from core.probing_tasks.from_trees.rows import Candidate, most_classes
from core.probing_tasks.from_trees.sentences import Sentence, is_punctuation

TOP_RELATIONS: Final = frozenset((
    "nsubj", "nsubjpass", "csubj", "csubjpass", "expl", "dobj", "iobj", "dative", "attr", "acomp", "oprd", "cop",
    "xcomp", "ccomp", "advcl", "obl", "prep", "agent", "conj", "parataxis", "appos",
))  # fmt: skip
"""Relations to the root that make up the task of top relations: subjects, objects, complements, clauses and
coordination, in the names of spaCy and of Universal Dependencies."""
MOST_SEQUENCES: Final = 19
OTHER: Final = "OTHER"
ORIGINAL, CHANGED = "O", "I"
"""Labels of SentEval for sentences as they are, and with words or clauses in another order."""


def tree_depth(sentences: Sequence[Sentence], chance: Random) -> list[Candidate]:
    """How deep a tree is: relations from the root to the word farthest below it, punctuation left out.

    The classes are a run of depths that gives enough rows of each.
    Source: Conneau et al. 2018, TreeDepth. Theirs is the depth of a tree of constituents, from 5 to 12, and rows are
    drawn so that depth and length are not correlated; a dependency tree is shallower, and here depth goes with length,
    which `tree_depth_matched` rules out.
    """
    depths = [_depth(sentence) for sentence in sentences]
    n_of = Counter(depths)
    chosen = most_classes({run: len(run) * min(n_of[int(depth)] for depth in run) for run in _runs(depths)})
    return _of_depths(sentences, depths, chosen, matched=False)


def tree_depth_matched(sentences: Sequence[Sentence], chance: Random) -> list[Candidate]:
    """How deep a tree is, as `tree_depth`, where length tells nothing: at each length all depths are equally frequent.

    Source: Conneau et al. 2018, TreeDepth, who take the correlation between depth and length away; here each length has
    the same number of sentences of every depth, so that nothing at all can be told from the length.
    """
    depths = [_depth(sentence) for sentence in sentences]
    n_of = Counter((depth, len(sentence.words)) for depth, sentence in zip(depths, sentences))
    lengths = {len(sentence.words) for sentence in sentences}
    matched = {
        run: len(run) * sum(min(n_of[int(depth), n_words] for depth in run) for n_words in lengths)
        for run in _runs(depths)
    }
    return _of_depths(sentences, depths, most_classes(matched), matched=True)


def _depth(sentence: Sentence) -> int:
    below, depth = [sentence.root], 0
    deepest = 0
    while below:
        if not all(is_punctuation(sentence.words[place]) for place in below):
            deepest = depth
        below = [child for place in below for child in sentence.children[place]]
        depth += 1
    return deepest


def _runs(depths: Sequence[int]) -> list[tuple[str, ...]]:
    """Every two or more depths that follow each other."""
    found = range(min(depths, default=0), max(depths, default=0) + 1)
    return [tuple(map(str, found[first:end])) for end in range(len(found) + 1) for first in range(end - 1)]


def _of_depths(
    sentences: Sequence[Sentence], depths: Sequence[int], chosen: Sequence[str], *, matched: bool
) -> list[Candidate]:
    return [
        Candidate(sentence.words, str(depth), sentence.document, str(len(sentence.words)) if matched else "")
        for sentence, depth in zip(sentences, depths)
        if str(depth) in chosen
    ]


def top_relations(sentences: Sequence[Sentence], chance: Random) -> list[Candidate]:
    """Which main parts the sentence has, in which order: the relations to the root, for example nsubj_root_dobj.

    Subjects, objects, complements, clauses, modifiers by a preposition and coordination count (TOP_RELATIONS); of
    coordinated words next to each other one is written. The classes are the commonest orders, at most 19, and OTHER.
    Source: Conneau et al. 2018, TopConst: the constituents below the top of the tree; 19 commonest orders and OTHER.
    A dependency tree has no constituents, and its relations tell subject from object, which theirs do not.
    """
    orders = [_order(sentence) for sentence in sentences]
    ranked = sorted(Counter(orders).items(), key=lambda one: (-one[1], one[0]))
    choices = {}
    for n_orders in range(1, min(MOST_SEQUENCES, len(ranked)) + 1):
        n_other = len(orders) - sum(rows for _, rows in ranked[:n_orders])
        fewest = min(ranked[n_orders - 1][1], n_other)
        choices[(*(order for order, _ in ranked[:n_orders]), OTHER)] = (n_orders + 1) * fewest
    chosen = most_classes(choices)
    return [
        Candidate(sentence.words, order if order in chosen else OTHER, sentence.document)
        for sentence, order in zip(sentences, orders)
        if chosen
    ]


def _order(sentence: Sentence) -> str:
    places = sorted((sentence.root, *sentence.children_by(sentence.root, *TOP_RELATIONS)))
    relations = [sentence.relations[place] for place in places]
    return "_".join(
        relation for relation, before in zip(relations, (None, *relations)) if (relation, before) != ("conj", "conj")
    )


def bigram_shift(sentences: Sequence[Sentence], chance: Random) -> list[Candidate]:
    """Whether two words next to each other, drawn by chance, have changed places (I) or not (O).

    The first word stays, and so do punctuation and quotation marks; the two words differ, also in lower case.
    Source: Conneau et al. 2018, BShift; the same rules. Sentences without two such words are left out of both classes.
    """
    candidates = []
    eligible = [(sentence, places) for sentence in sentences if (places := _shiftable(sentence.words))]
    for label, (sentence, places) in zip(by_turns(len(eligible), chance), eligible):
        place = chance.choice(places)
        words = list(sentence.words)
        if label == CHANGED:
            words[place], words[place + 1] = words[place + 1], words[place]
        candidates.append(Candidate(tuple(words), label, sentence.document))
    return candidates


def _shiftable(words: Sequence[str]) -> list[int]:
    """Indices of words that may change places with the next one."""
    return [
        place
        for place in range(1, len(words) - 1)
        if not is_punctuation(words[place])
        and not is_punctuation(words[place + 1])
        and words[place].lower() != words[place + 1].lower()
    ]


def by_turns(n_rows: int, chance: Random) -> list[str]:
    """The labels O and I for rows, in an order by chance, equally often."""
    labels = [(ORIGINAL, CHANGED)[row % 2] for row in range(n_rows)]
    chance.shuffle(labels)
    return labels
