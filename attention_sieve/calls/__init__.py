"""The analyses as calls: one function for each of them, with the options of its command as keywords.

    import attention_sieve as sieve
    found = sieve.roles("bundled", ["The chef who ran laughed.", ("A first segment.", "A second.")], tau=3)
    found.table, found.facts

`model` is the name of a checkpoint, its folder, what `load` returns, or a model of transformers in memory with its
tokenizer. Nothing is written to disk, and no answers are kept.
"""

from attention_sieve.calls.analyses import CALLS, call_of
from attention_sieve.calls.arrays import Attention, attention
from attention_sieve.calls.card import card
from attention_sieve.calls.claims import claim
from attention_sieve.calls.comparison import compare
from attention_sieve.calls.finding import Finding
from attention_sieve.calls.given import load
from attention_sieve.calls.notebook import show
from attention_sieve.calls.saving import save_page

__all__ = [
    "CALLS",
    "Attention",
    "Finding",
    "attention",
    "call_of",
    "card",
    "claim",
    "compare",
    "load",
    "save_page",
    "show",
]
