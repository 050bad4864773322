"""What changes in a checkpoint's output from one sentence to another: its vector, prediction and word probabilities."""

from dataclasses import dataclass

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.comparison.word_swap import MOST_WORDS, WordPair, aligned_sentences
from attention_sieve.core.passes.outputs import HeadOutput, output_of_both, vector_angle, word_probability
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text


@dataclass(frozen=True, kw_only=True)
class Likelihood:
    """How likely a language model finds the words at a changed place, each in its own sentence."""

    pair: WordPair
    a: float | None
    """Probability, 0 to 1; None where there is no word, or nothing before it."""
    b: float | None


@dataclass(frozen=True, eq=False, kw_only=True)
class SwapOutput:
    """What changes in the output from one sentence to another."""

    angle: float
    """Between the vectors of the two sentences, in degrees."""
    head: HeadOutput | None
    """Classes, or likeliest tokens after each sentence, before and after the change; None as `output_of_both`."""
    likelihoods: tuple[Likelihood, ...]
    """Of the first changed places; empty for a checkpoint that predicts no tokens for a sentence."""
    n_left_out: int
    """Number of changed places beyond them."""


def swap_output(
    checkpoint: Checkpoint, texts: tuple[Text, Text], a: PassText, b: PassText, settings: PassSettings
) -> SwapOutput:
    """Compare a checkpoint's output for two sentences.

    Args:
        texts: both sentences.
        a, b: prepared for the kind of attention in the settings.
        settings: which heads are off.

    Raises: AnalysisError as `attention_sieve.core.comparison.word_swap.aligned_sentences`.
    """
    changed = [pair for pair in aligned_sentences(texts, a, b) if pair.is_changed]
    likelihoods = []
    for pair in changed[:MOST_WORDS]:
        before, after = (
            None if word is None else word_probability(checkpoint, text, word.tokens, settings)
            for text, word in ((a, pair.a), (b, pair.b))
        )
        likelihoods.append(Likelihood(pair=pair, a=before, b=after))
    is_told = any(word.a is not None or word.b is not None for word in likelihoods)
    return SwapOutput(
        angle=vector_angle(checkpoint, a, b, settings),
        head=output_of_both(checkpoint, a, b, settings),
        likelihoods=tuple(likelihoods) if is_told else (),
        n_left_out=len(changed) - len(likelihoods) if is_told else 0,
    )
