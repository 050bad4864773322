from io import BytesIO

import numpy as np
from PIL import Image

from attention_sieve.dashboard.figures.film import BEAT, CELL, GAP, LINE, REST, film


def test_a_film_shows_each_head_at_each_step_and_says_where_it_comes_from():
    attention = np.random.default_rng(0).dirichlet(np.ones(5), (3, 2, 4, 5))
    file = Image.open(BytesIO(film(attention, [f"step {step}" for step in range(3)], "checkpoint: toy")))
    assert (file.format, file.n_frames, file.info["comment"], file.info["loop"]) == ("GIF", 3, b"checkpoint: toy", 0)
    for step, weights in enumerate(attention):
        file.seek(step)
        assert file.info["duration"] == (REST if step == 2 else BEAT)
        frame = np.asarray(file.convert("L"), float)
        for layer, head in np.ndindex(2, 4):
            left, top = GAP + head * (CELL + GAP), GAP + LINE + layer * (LINE + CELL + GAP) + LINE
            middles = ((np.arange(5) + 0.5) * CELL / 5).astype(int)
            seen = frame[top + middles[:, None], left + middles]
            np.testing.assert_allclose(seen, 255 * (1 - weights[layer, head]), atol=2)
