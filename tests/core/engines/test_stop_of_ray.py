"""A run on Ray that is asked to stop while Ray starts."""

import threading

import pytest
from engine_work import begin_not

from attention_sieve.core.engines.on_ray import run_on_ray
from attention_sieve.core.pauses import pausing
from attention_sieve.core.running import Stopped


def test_it_does_not_wait_for_ray_which_ends_once_it_has_started():
    import ray

    def stop():
        raise Stopped

    with pausing(stop), pytest.raises(Stopped):
        list(run_on_ray(begin_not, [1], n_workers=1))
    (starting,) = [thread for thread in threading.enumerate() if thread.name == "Ray"]
    assert not ray.is_initialized()
    starting.join()
    assert not ray.is_initialized()
