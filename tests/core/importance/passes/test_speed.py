from itertools import accumulate, chain

from attention_sieve.core.importance.passes.speed import FEWEST_ROUNDS, speeds


def test_ratios_are_taken_within_a_round_and_speeds_are_texts_a_second(loaded, monkeypatch):
    checkpoint = loaded("bert", "float64")
    times = [2.0, 1.0] * (FEWEST_ROUNDS - 1) + [8.0, 2.0]  # the last round was slower, and its ratio another
    clock = accumulate(chain([0.0], *((0.0, seconds) for seconds in times), [0.0]))
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    (measured,) = speeds(checkpoint, checkpoint, batch_sizes=[4], seconds=0.0)
    assert (measured.batch_size, measured.n_rounds) == (4, FEWEST_ROUNDS)
    assert (measured.before, measured.after) == (2, 4)
    assert (measured.ratio, measured.low, measured.high) == (2, 2, 2)


def test_an_encoder_decoder_is_run_whole(loaded):
    checkpoint = loaded("t5", "float64")
    (measured,) = speeds(checkpoint, checkpoint, batch_sizes=[1], seconds=0.0)
    assert 0 < measured.low <= measured.ratio <= measured.high
