"""Summaries of many heads' scores on many tasks, as the paper gives them."""

import numpy as np
from jaxtyping import Float

from core.attention.settings import Head


def best_head(scores: Float[np.ndarray, "layer head"]) -> Head:
    """The head with the greatest score, the first of equal ones; its score on the same texts is too good."""
    layer, head = np.unravel_index(np.nan_to_num(scores, nan=-np.inf).argmax(), scores.shape)
    return int(layer), int(head)


def task_similarity(scores: Float[np.ndarray, "task layer head"]) -> Float[np.ndarray, "task other_task"]:
    """Pearson's correlation over the heads between the scores on any two tasks; NaN where one is constant.

    Heads without a score on some task take no part.

    Source: Jo and Myaeng 2020.
    """
    flat = scores.reshape(len(scores), -1).astype(float)
    flat = flat[:, ~np.isnan(flat).any(axis=0)]
    centred = flat - flat.mean(axis=1, keepdims=True)
    sizes = np.sqrt((centred**2).sum(axis=1))
    products = np.outer(sizes, sizes)
    return np.divide(centred @ centred.T, products, out=np.full(products.shape, np.nan), where=products > 0)


def sorted_in_layers(scores: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, "layer rank"]:
    """Scores of each layer's heads, the best first; NaN last.

    Source: Jo and Myaeng 2020.
    """
    return -np.sort(-scores, axis=1)


def localisation(scores: Float[np.ndarray, "layer head"]) -> Float[np.ndarray, " rank"]:
    """Scores of all heads, the best first: steep where few heads know of the task.

    Source: Jo and Myaeng 2020.
    """
    flat = scores[~np.isnan(scores)]
    return np.sort(flat)[::-1]
