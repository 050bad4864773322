"""The section of a model card: counts and names of heads by hand, from the table alone."""

import numpy as np
import pandas as pd

from attention_sieve.__main__ import main
from attention_sieve.core.roles.card import role_card

TABLE = pd.DataFrame(
    {
        "role": ["local"] * 4 + ["block"] * 4,
        "layer": [0, 0, 1, 1] * 2,
        "head": [0, 1] * 4,
        "texts": [7, 7, 7, 0, 0, 0, 0, 0],
        "holds": [True, False, True, False] + [False] * 4,
    }
)


def test_a_card_counts_and_names_the_heads_of_each_role():
    lines = role_card(TABLE, {"checkpoint": "mine|<b>", "tau": "3", "heads off": ""}).splitlines()
    assert "| local | neighbouring tokens | 2 | 3 | L0 H0, L1 H0 |" in lines
    assert "| block | tokens of the same segment | 0 | 0 | not tested |" in lines
    assert "| checkpoint | mine\\|&lt;b> |" in lines, "a name is text, not Markdown"
    assert lines[-1] == "| texts | 7 |"
    assert not any("heads off" in line for line in lines)
    assert any(line.startswith("| program | Attention Sieve ") for line in lines)


def test_the_command_writes_a_card_of_the_heads_in_its_table(tmp_path):
    places = pd.MultiIndex.from_product(
        [range(9), ["local"], range(2), range(3)], names=["text", "role", "layer", "head"]
    )
    scores = np.random.default_rng(0).random((9, 6)) + np.array([9, 0, 0, 0, 9, 0])
    table = pd.DataFrame({"score": scores.ravel(), "uniform": 1.0, "greatest": 40.0}, index=places).reset_index()
    table.attrs = {"checkpoint": "mine", "texts sha256": "ab"}
    table.to_parquet(tmp_path / "s.parquet", index=False)
    assert main(["roles", str(tmp_path / "s.parquet"), "--output", str(tmp_path / "card.md"), "--tau", "4"]) == 0
    lines = (tmp_path / "card.md").read_text("utf-8").splitlines()
    assert "| local | neighbouring tokens | 2 | 6 | L0 H0, L1 H1 |" in lines
    assert {"| checkpoint | mine |", "| tau | 4 |", "| correction | bh |", "| texts | 9 |"} < set(lines)
