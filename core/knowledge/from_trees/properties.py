"""Tasks about a property of a sentence: its length, a word in it, its tree, or tense and number of its key words."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from random import Random
from typing import Final

from attention_sieve.core.knowledge.from_trees.rows import Candidate, at_most_of_a_unit, most_classes
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, is_punctuation

BINS: Final = ((5, 8), (9, 12), (13, 16), (17, 20), (21, 25), (26, 28))
"""First and last length of each class of the length task, in words and punctuation marks."""
MOST_WORDS: Final = 1_000
"""Maximum number of classes of the word content task."""
LEAST_LETTERS: Final = 4
SENTENCES_OF_A_WORD: Final = 30
"""Minimum number of sentences for each word in which it is the only selected word."""
STARTS: Final = 100
"""Number of frequency ranks, evenly spaced, at which a run of words may begin."""
TOP_RELATIONS: Final = frozenset((
    "nsubj", "nsubjpass", "csubj", "csubjpass", "expl", "dobj", "iobj", "dative", "attr", "acomp", "oprd", "cop",
    "xcomp", "ccomp", "advcl", "obl", "prep", "agent", "conj", "parataxis", "appos",
))  # fmt: skip
"""Relations to the root that the top relations task uses: subjects, objects, complements, clauses and coordination,
under the names of spaCy and of Universal Dependencies."""
MOST_SEQUENCES: Final = 19
OTHER: Final = "OTHER"
TENSES: Final = {"VBD": "PAST", "VBP": "PRES", "VBZ": "PRES"}
NUMBERS: Final = {"NN": "NN", "NNS": "NNS"}
SHARE_OF_A_FORM: Final = 0.05
"""Maximum share of the rows of a class with the same key word."""


def length(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How many words and punctuation marks a sentence has, in six bins.

    Bins 0 to 5: 5-8, 9-12, 13-16, 17-20, 21-25 and 26-28; if one of them has no sentences, there is no task.
    Source: Conneau et al. 2018, SentLen; the same bins.
    """
    bin_of = {n_words: str(number) for number, (first, last) in enumerate(BINS) for n_words in range(first, last + 1)}
    candidates = [Candidate(sentence.words, bin_of[len(sentence.words)], sentence.document) for sentence in sentences]
    return candidates if len({candidate.label for candidate in candidates}) == len(BINS) else []


def word_content(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Which one of a list of words a sentence contains.

    The list is a run of words of at least four letters in the order of their frequency in the corpus; a sentence counts
    if it contains exactly one of them, once, in upper or lower case.
    Source: Conneau et al. 2018, WC. They take 1,000 words, from rank 2,001 of a very large corpus. Here the run is the
    longest, up to 1,000 words, in which each word has 30 sentences; of runs of the same length, the one with the most
    frequent words. In a large corpus only a hundred starting points are tried.
    """
    words = _longest_run(sentences)
    candidates = []
    for sentence in sentences:
        matches = [word for word in map(str.lower, sentence.words) if word in words]
        if len(matches) == 1:
            candidates.append(Candidate(sentence.words, matches[0], sentence.document))
    return candidates


def _longest_run(sentences: Sequence[ParsedSentence]) -> frozenset[str]:
    """The longest run of words in order of rank, each with enough sentences in which it is the only one."""
    times_in = _times(sentences)
    ranked = sorted(times_in, key=lambda word: (-sum(times_in[word].values()), word))
    ranked = [word for word in ranked if len(times_in[word]) >= SENTENCES_OF_A_WORD]
    best: list[str] = []
    for first in range(0, len(ranked), max(1, len(ranked) // STARTS)):
        run = _run_from(ranked[first : first + MOST_WORDS], times_in)
        best = run if len(run) > len(best) else best
    return frozenset(best)


def _run_from(ranked: Sequence[str], times_in: Mapping[str, Mapping[int, int]]) -> list[str]:
    """The longest prefix of the ranked words in which each has enough sentences."""
    n_matches: Counter[int] = Counter()
    only_word: dict[int, str] = {}
    n_alone: Counter[str] = Counter()
    for n_words, word in enumerate(ranked):
        affected = {word}
        for row, times in times_in[word].items():
            if n_matches[row] == 1:
                n_alone[only_word[row]] -= 1
                affected.add(only_word[row])
            if not n_matches[row] and times == 1:
                only_word[row] = word
                n_alone[word] += 1
            n_matches[row] += times
        if any(n_alone[affected_word] < SENTENCES_OF_A_WORD for affected_word in affected):
            return list(ranked[:n_words])
    return list(ranked)


def _times(sentences: Sequence[ParsedSentence]) -> dict[str, dict[int, int]]:
    """How often each word of enough letters occurs in each sentence."""
    times: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))
    for row, sentence in enumerate(sentences):
        for word in map(str.lower, sentence.words):
            if len(word) >= LEAST_LETTERS and word.isalpha():
                times[word][row] += 1
    return times


def tree_depth(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How deep a tree is: relations from the root to the word farthest below it, punctuation left out.

    The classes are a run of depths that gives enough rows of each.
    Source: Conneau et al. 2018, TreeDepth. Theirs is the depth of a constituency tree, from 5 to 12, and rows are drawn
    so that depth and length are not correlated; a dependency tree is shallower, and here depth is correlated with
    length, which `tree_depth_matched` rules out.
    """
    return _by_depth(sentences, [""] * len(sentences))


def tree_depth_matched(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """How deep a tree is, as `tree_depth`, but independent of length: at each length all depths are equally frequent.

    Source: Conneau et al. 2018, TreeDepth, who remove the correlation between depth and length; here each length has
    the same number of sentences of every depth, so that length carries no information about depth at all.
    """
    return _by_depth(sentences, [str(len(sentence.words)) for sentence in sentences])


def _by_depth(sentences: Sequence[ParsedSentence], strata: Sequence[str]) -> list[Candidate]:
    """Sentences by their depth, of the run of depths that gives enough rows; `strata` are as those of candidates."""
    depths = [_depth(sentence) for sentence in sentences]
    counts = Counter(zip(depths, strata))
    choices = {
        run: len(run) * sum(min(counts[int(depth), stratum] for depth in run) for stratum in set(strata))
        for run in _runs(depths)
    }
    classes = most_classes(choices)
    return [
        Candidate(sentence.words, str(depth), sentence.document, stratum)
        for sentence, depth, stratum in zip(sentences, depths, strata)
        if str(depth) in classes
    ]


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


def tense(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the root of the tree is a verb in the past tense (VBD) or in the present (VBP, VBZ).

    Each form of the verb occurs in one part only, and in at most 5% of a class.
    Source: Conneau et al. 2018, Tense, who take verbs that occur 100 to 5,000 times in their corpus; in a small one the
    share replaces these limits. In Universal Dependencies the root of "she was happy" is "happy", so such sentences are
    left out; in spaCy's trees the root is "was", and they are included.
    """
    roots = ((sentence, sentence.root) for sentence in sentences)
    return at_most_of_a_unit(
        [
            Candidate(sentence.words, TENSES[sentence.tags[root]], sentence.words[root].lower())
            for sentence, root in roots
            if sentence.tags[root] in TENSES
        ],
        SHARE_OF_A_FORM,
        rng,
    )


def subject_number(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the subject of the root is a noun in the singular (NN) or in the plural (NNS).

    Sentences with one subject (nsubj, or nsubjpass in the passive) count, unless it is a pronoun or a name. A form of
    the noun comes into one part only, and is the subject of at most 5% of a class.
    Source: Conneau et al. 2018, SubjNum; their limits of frequency are replaced as in `tense`.
    """
    return _number_of(sentences, ("nsubj", "nsubjpass"), rng)


def object_number(sentences: Sequence[ParsedSentence], rng: Random) -> list[Candidate]:
    """Whether the direct object of the root is a noun in the singular (NN) or in the plural (NNS).

    Sentences with one such object (dobj, in Universal Dependencies obj) count. A form of the noun comes into one part
    only, and is the object of at most 5% of a class.
    Source: Conneau et al. 2018, ObjNum; their limits of frequency are replaced as in `tense`.
    """
    return _number_of(sentences, ("dobj",), rng)


def _number_of(sentences: Sequence[ParsedSentence], relations: tuple[str, ...], rng: Random) -> list[Candidate]:
    candidates = []
    for sentence in sentences:
        indices = sentence.children_by(sentence.root, *relations)
        if len(indices) == 1 and (tag := sentence.tags[indices[0]]) in NUMBERS:
            candidates.append(Candidate(sentence.words, NUMBERS[tag], sentence.words[indices[0]].lower()))
    return at_most_of_a_unit(candidates, SHARE_OF_A_FORM, rng)
