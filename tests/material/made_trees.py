"""Sentences with trees, written by hand."""

from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence
from attention_sieve.core.texts.relations import ROOT


def tree(written, document="a"):
    """A sentence of words as form/tag/head/relation; heads count from 1, and 0 is the root."""
    words, tags, heads, relations = zip(*(word.split("/") for word in written.split()))
    return ParsedSentence(
        words, tags, tuple(int(head) - 1 if head != "0" else ROOT for head in heads), relations, document
    )


def flat(words, document="a", tags=None):
    """A sentence whose words all hang on the first."""
    words = tuple(words.split())
    return ParsedSentence(
        words,
        tags or ("NN",) * len(words),
        (ROOT, *[0] * (len(words) - 1)),
        ("root", *["dep"] * (len(words) - 1)),
        document,
    )


def conllu(*sentences):
    """The content of a CoNLL-U file, without documents."""
    return "".join(
        "".join(
            f"{place}\t{word}\t_\t_\t{tag}\t_\t{head + 1}\t{relation}\t_\t_\n"
            for place, (word, tag, head, relation) in enumerate(
                zip(one.words, one.tags, one.heads, one.relations), start=1
            )
        )
        + "\n"
        for one in sentences
    )


HE_SAW_DOGS = tree("He/PRP/2/nsubj saw/VBD/0/root two/CD/5/nummod black/JJ/5/amod dogs/NNS/2/dobj ././2/punct")
SHE_SANG = tree(
    "Ann/NNP/2/nsubj sang/VBD/0/root loudly/RB/2/advmod ,/,/2/punct but/CC/8/cc the/DT/7/det birds/NNS/8/nsubj "
    "left/VBD/2/conj again/RB/8/advmod ././2/punct"
)


def corpus(n_sentences=400):
    """Sentences of seven words, a verb in the past or the present, no two with the same subject or verb."""
    return [
        tree(
            f"dog{row}/{('NN', 'NNS')[row // 2 % 2]}/2/nsubj verb{row}/{('VBD', 'VBZ')[row % 2]}/0/root "
            "two/CD/4/nummod cats/NNS/2/dobj here/RB/2/advmod now/RB/2/advmod ././2/punct",
            f"document {row // 4}",
        )
        for row in range(n_sentences)
    ]
