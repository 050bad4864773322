"""The sieve bias scores once more, from whole maps and straight from their definition; shares no code with core.

Everything is in float64. Positions are given by the tests, which know how their texts are laid out.
"""

from dataclasses import dataclass

import numpy as np

NAN = float("nan")


@dataclass(frozen=True)
class Layout:
    """Where the parts of a tokenized text stand."""

    n_tokens: int
    cls: tuple[int, ...]
    sep: tuple[int, ...]
    first: tuple[int, ...]
    second: tuple[int, ...]
    causal: bool = False

    @classmethod
    def of(cls, n_first, n_second, *, before=1, between=1, after=1, marks=True, causal=False):
        """A text: marks, first segment, marks, second segment (0 tokens: none), marks."""
        start = before + n_first
        n_tokens = start + between + n_second + after if n_second else start + after
        first, second = range(before, start), range(start + between, start + between + n_second)
        sep = tuple(i for i in range(start, n_tokens) if i not in second)
        return cls(n_tokens, (0,) if marks else (), sep if marks else (), tuple(first), tuple(second), causal)

    def live(self, query):
        return range(query + 1 if self.causal else self.n_tokens)


def eager_attention(model_class, folder, ids, type_ids=None):
    """Attention [layer head query key] of one text, from transformers' own eager path in float64."""
    import torch

    model = model_class.from_pretrained(folder, attn_implementation="eager", dtype=torch.float64).eval()
    inputs = {"input_ids": torch.tensor(ids)[None]}
    if type_ids is not None:
        inputs["token_type_ids"] = torch.tensor(type_ids)[None]
    with torch.no_grad():
        maps = model(**inputs, output_attentions=True).attentions
    return torch.cat(maps).double().numpy()


def eager_maps(model, inputs):
    """Output, and attention [layer text head query key] by kind, of a batch on transformers' own eager path."""
    import torch

    with torch.no_grad():
        seen = model(**inputs, output_attentions=True)
    if "decoder_input_ids" in inputs:
        maps = {"encoder": seen.encoder_attentions, "decoder": seen.decoder_attentions, "cross": seen.cross_attentions}
    else:
        maps = {"self": seen.attentions}
    return seen[0], {kind: torch.stack(layers) for kind, layers in maps.items()}


def measures(attention, layout, pairs):
    """Measure -> scores [layer head] of one text; NaN where it is not applicable."""
    band = lambda i: [j for j in range(i - 2, i + 3) if 0 <= j < layout.n_tokens]  # noqa: E731
    block = lambda i: layout.first if i <= layout.first[-1] else layout.second  # noqa: E731
    found = {
        "local": by_query(attention, layout, band),
        "delimiter": by_query(attention, layout, lambda i: layout.cls + layout.sep),
        "delimiter:cls": by_query(attention, layout, lambda i: layout.cls),
        "delimiter:sep": by_query(attention, layout, lambda i: layout.sep),
        "sink": by_query(attention, layout, lambda i: (0,) if layout.causal else ()),
        "block": by_query(attention, layout, block if layout.second else lambda i: (), weight=entropy),
        "block without entropy": by_query(attention, layout, block if layout.second else lambda i: ()),
    }
    for role in ("syntactic", "syntactic:nsubj", "syntactic:dobj", "syntactic:amod", "syntactic:advmod"):
        chosen = [(dependent, head) for name, dependent, head in pairs if role in ("syntactic", f"syntactic:{name}")]
        found[f"{role} dependent-to-head"] = by_pair(attention, layout, chosen)
        found[f"{role} head-to-dependent"] = by_pair(attention, layout, [(head, dep) for dep, head in chosen])
    return found


def by_query(attention, layout, sieve, weight=None):
    """Mean over the queries whose sieve is not empty of: mean attention in the sieve over mean attention in the row."""
    token_scores = []
    for query in range(layout.n_tokens):
        live = layout.live(query)
        inside = [key for key in sieve(query) if key in live]
        if inside:
            row = attention[:, :, query, list(live)]
            score = attention[:, :, query, inside].mean(-1) / row.mean(-1)
            token_scores.append(score * (1 if weight is None else weight(row)))
    return np.mean(token_scores, axis=0) if token_scores else np.full(attention.shape[:2], NAN)


def entropy(rows):
    """Of each key's share of the row; rows sum to less than 1 where a model has attention sinks."""
    rows = rows / rows.sum(-1, keepdims=True)
    return -np.sum(np.where(rows > 0, rows * np.log(np.where(rows > 0, rows, 1)), 0), axis=-1)


def by_pair(attention, layout, pairs):
    """Mean over pairs of: mean attention between the pieces over the mean attention of the rows of those pieces."""
    scores = []
    for queries, keys in pairs:
        cells = [(i, j) for i in queries for j in keys if j in layout.live(i)]
        if cells:
            uniform = np.mean([1 / len(layout.live(i)) for i in {i for i, _ in cells}])
            shares = [attention[:, :, i, j] / attention[:, :, i, list(layout.live(i))].sum(-1) for i, j in cells]
            scores.append(np.mean(shares, axis=0) / uniform)
    return np.mean(scores, axis=0) if scores else np.full(attention.shape[:2], NAN)
