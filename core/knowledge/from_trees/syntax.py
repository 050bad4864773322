"""Syntactic tasks: depth of the tree, relations below its root, and whether two words were swapped."""

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate, most_classes
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, is_punctuation

TOP_RELATIONS: Final = frozenset((
    "nsubj", "nsubjpass", "csubj", "csubjpass", "expl", "dobj", "iobj", "dative", "attr", "acomp", "oprd", "cop",
    "xcomp", "ccomp", "advcl", "obl", "prep", "agent", "conj", "parataxis", "appos",
))  # fmt: skip
"""Relations to the root that the top relations task uses: subjects, objects, complements, clauses and coordination,
under the names of spaCy and of Universal Dependencies."""
MOST_SEQUENCES: Final = 19
OTHER: Final = "OTHER"
ORIGINAL, CHANGED = "O", "I"
"""SentEval's labels for original sentences, and for those with swapped words or clauses."""


def tree_depth(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How deep a tree is: relations from the root to the word farthest below it, punctuation left out.

    The classes are a run of depths that gives enough rows of each.
    Source: Conneau et al. 2018, TreeDepth. Theirs is the depth of a constituency tree, from 5 to 12, and rows are drawn
    so that depth and length are not correlated; a dependency tree is shallower, and here depth is correlated with
    length, which `tree_depth_matched` rules out.
    """
    depths = [_depth(sentence) for sentence in sentences]
    counts = Counter(depths)
    classes = most_classes({run: len(run) * min(counts[int(depth)] for depth in run) for run in _runs(depths)})
    return _of_depths(sentences, depths, classes, matched=False)


def tree_depth_matched(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How deep a tree is, as `tree_depth`, but independent of length: at each length all depths are equally frequent.

    Source: Conneau et al. 2018, TreeDepth, who remove the correlation between depth and length; here each length has
    the same number of sentences of every depth, so that length carries no information about depth at all.
    """
    depths = [_depth(sentence) for sentence in sentences]
    counts = Counter((depth, len(sentence.words)) for depth, sentence in zip(depths, sentences))
    lengths = {len(sentence.words) for sentence in sentences}
    choices = {
        run: len(run) * sum(min(counts[int(depth), n_words] for depth in run) for n_words in lengths)
        for run in _runs(depths)
    }
    return _of_depths(sentences, depths, most_classes(choices), matched=True)


def _depth(sentence: ParsedSentence) -> int:
    level, depth = [sentence.root], 0
    deepest = 0
    while level:
        if not all(is_punctuation(sentence.words[index]) for index in level):
            deepest = depth
        level = [child for index in level for child in sentence.children[index]]
        depth += 1
    return deepest


def _runs(depths: Sequence[int]) -> list[tuple[str, ...]]:
    """All runs of two or more consecutive depths."""
    depth_range = range(min(depths, default=0), max(depths, default=0) + 1)
    return [tuple(map(str, depth_range[first:end])) for end in range(len(depth_range) + 1) for first in range(end - 1)]


def _of_depths(
    sentences: Sequence[ParsedSentence], depths: Sequence[int], classes: Sequence[str], *, matched: bool
) -> list[Candidate]:
    return [
        Candidate(sentence.words, str(depth), sentence.document, str(len(sentence.words)) if matched else "")
        for sentence, depth in zip(sentences, depths)
        if str(depth) in classes
    ]


def top_relations(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Which main parts the sentence has, in which order: the relations to the root, for example nsubj_root_dobj.

    Subjects, objects, complements, clauses, modifiers by a preposition and coordination count (TOP_RELATIONS); adjacent
    coordinated words are written once. The classes are the most frequent orders, at most 19, and OTHER.
    Source: Conneau et al. 2018, TopConst: the constituents below the top of the tree; the 19 most frequent orders and
    OTHER. A dependency tree has no constituents, but its relations distinguish subject from object, which theirs do
    not.
    """
    orders = [_order(sentence) for sentence in sentences]
    ranked = sorted(Counter(orders).items(), key=lambda item: (-item[1], item[0]))
    choices = {}
    for n_orders in range(1, min(MOST_SEQUENCES, len(ranked)) + 1):
        n_other = len(orders) - sum(rows for _, rows in ranked[:n_orders])
        fewest = min(ranked[n_orders - 1][1], n_other)
        choices[(*(order for order, _ in ranked[:n_orders]), OTHER)] = (n_orders + 1) * fewest
    classes = most_classes(choices)
    return [
        Candidate(sentence.words, order if order in classes else OTHER, sentence.document)
        for sentence, order in zip(sentences, orders)
        if classes
    ]


def _order(sentence: ParsedSentence) -> str:
    indices = sorted((sentence.root, *sentence.children_by(sentence.root, *TOP_RELATIONS)))
    relations = [sentence.relations[index] for index in indices]
    return "_".join(
        relation
        for relation, previous in zip(relations, (None, *relations))
        if (relation, previous) != ("conj", "conj")
    )


def bigram_shift(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether two adjacent words, chosen at random, were swapped (I) or not (O).

    The first word stays, and so do punctuation and quotation marks; the two words differ, also in lower case.
    Source: Conneau et al. 2018, BShift; the same rules. Sentences without two such words are left out of both classes.
    """
    candidates = []
    eligible = [(sentence, indices) for sentence in sentences if (indices := _shiftable(sentence.words))]
    for label, (sentence, indices) in zip(by_turns(len(eligible), rng), eligible):
        index = rng.choice(indices)
        words = list(sentence.words)
        if label == CHANGED:
            words[index], words[index + 1] = words[index + 1], words[index]
        candidates.append(Candidate(tuple(words), label, sentence.document))
    return candidates


def _shiftable(words: Sequence[str]) -> list[int]:
    return [
        index
        for index in range(1, len(words) - 1)
        if not is_punctuation(words[index])
        and not is_punctuation(words[index + 1])
        and words[index].lower() != words[index + 1].lower()
    ]


def by_turns(n_rows: int, rng: Random) -> list[str]:
    """Labels O and I for rows, equally often, in random order."""
    labels = [(ORIGINAL, CHANGED)[row % 2] for row in range(n_rows)]
    rng.shuffle(labels)
    return labels
