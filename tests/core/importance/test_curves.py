import numpy as np
import pandas as pd
import pytest
import torch

from core.__main__ import main
from core.attention.observed import observe
from core.errors import AnalysisError
from core.importance.curves import Curve, gatings, most_removable, n_removed, random_importance, removal_order

IMPORTANCE = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, 0.1]])


def test_the_least_important_head_goes_first_and_the_best_of_a_layer_may_stay():
    assert removal_order(IMPORTANCE).tolist() == [[1, 2], [1, 0], [0, 1], [0, 2], [0, 0], [1, 1]]
    assert removal_order(IMPORTANCE, 1).tolist() == [[1, 2], [1, 0], [0, 1], [0, 2]]
    assert removal_order(IMPORTANCE, 3).tolist() == []
    with pytest.raises(AnalysisError, match="has 3 heads, so 4 cannot be kept"):
        removal_order(IMPORTANCE, 4)


def test_steps_are_tenths_of_all_heads_rounded_down_as_far_as_heads_may_go():
    assert n_removed(72, 72).tolist() == [0, 7, 14, 21, 28, 36, 43, 50, 57, 64, 72]
    assert n_removed(72, 40).tolist() == [0, 7, 14, 21, 28, 36, 40]
    gates = gatings(removal_order(IMPORTANCE), np.array([0, 2]), 2, 3)
    assert gates.tolist() == [[[1, 1, 1], [1, 1, 1]], [[1, 1, 1], [0, 1, 0]]]


def test_random_orders_are_the_same_for_the_same_draw():
    assert (random_importance(2, 3, 1) == random_importance(2, 3, 1)).all()
    assert (random_importance(2, 3, 1) != random_importance(2, 3, 2)).all()


def test_removable_heads_end_where_the_score_first_falls_too_far():
    none, counts = np.full(4, np.nan), np.array([0, 2, 4, 6])
    deltas = (("a", 0, [0, -0.005, -0.2, 0]), ("random", 0, [0, 0.2, 0, -1]), ("random", 1, [0, -0.3, -0.1, -1]))
    curves = [
        Curve(order=name, draw=draw, n_removed=counts, score=none, delta=np.array(delta), low=none, high=none)
        for name, draw, delta in deltas
    ]
    assert most_removable(curves, -1, 0.01) == {"a": 2, "random": 0}
    assert most_removable(curves, -1, 0.06) == {"a": 2, "random": 4}


def test_prune_judges_each_half_of_the_texts_by_the_order_of_the_other(tmp_path, loaded):
    checkpoint = loaded("bert", "float64")
    texts = ["the cat ran", "who sat on the mat", "a dog", "she eats red apples"]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    table = curves_of(tmp_path, checkpoint, "--greedy", "--at-least", "1")
    counts = [0, 1, 2, 3, 4]
    assert table.groupby(["order", "draw"])["removed"].apply(list).tolist() == [counts] * (3 + 7 + 10)
    assert table[table["removed"] == 0]["score"].abs().max() < 1e-12
    assert set(table["order"]) >= {"ablation", "reverse", "greedy", "random", "flap", "relevance"}
    by_order = table.set_index(["order", "draw", "removed"])["score"]
    # By hand: single ablations of the other half decide what is removed from a text.
    ids = [torch.tensor(checkpoint.tokenizer(text)["input_ids"])[None] for text in texts]

    def change(place, gates):
        full, without = (
            observe(checkpoint.model, {"input_ids": ids[place]}, [], gates=of)[0][0].mean(0) for of in (None, gates)
        )
        return 1 - float(torch.cosine_similarity(full, without, dim=0))

    changes = []
    for half, other in (((0, 2), (1, 3)), ((1, 3), (0, 2))):
        damage = np.zeros((2, 3))
        for head in np.ndindex(2, 3):
            gates = torch.ones((2, 3))
            gates[head] = 0
            damage[head] = np.mean([change(place, gates) for place in half])
        gates = torch.ones((2, 3))
        for layer, head in removal_order(damage, 1)[:3]:
            gates[layer, head] = 0
        changes += [change(place, gates) for place in other]
    assert by_order["ablation", 0, 3] == pytest.approx(np.mean(changes), abs=1e-10)
    assert by_order["greedy", 0, 1] != by_order["reverse", 0, 1]


def curves_of(folder, checkpoint, *more):
    options = ["--checkpoint", str(checkpoint.files.folder), "--dtype", "float64", "--texts", str(folder / "texts.txt")]
    assert main(["prune", *options, "--output", str(folder / "curves.csv"), *more]) == 0
    return pd.read_csv(folder / "curves.csv")
