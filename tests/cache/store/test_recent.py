import time

from attention_sieve.cache.store.recent import Recent, forget_everywhere


def test_the_least_recently_used_goes_when_the_bytes_are_passed():
    recent = Recent(100)
    recent.put("a", 1, 40)
    recent.put("b", 2, 40)
    assert recent.get("a") == 1
    recent.put("c", 3, 40)
    assert [recent.get(key) for key in "abc"] == [1, None, 3]
    assert recent.size == 80


def test_an_answer_put_again_counts_once():
    recent = Recent(100)
    recent.put("a", 1, 60)
    recent.put("a", 2, 70)
    assert (recent.get("a"), recent.size) == (2, 70)


def test_the_latest_is_held_however_large_it_is():
    recent = Recent(100)
    recent.put("a", 1, 10)
    recent.put("b", 2, 900)
    assert (recent.get("a"), recent.get("b")) == (None, 2)


def test_as_many_of_the_latest_as_asked_for_are_held():
    recent = Recent(100, always=2)
    for key in "abc":
        recent.put(key, key.upper(), 900)
    assert [recent.get(key) for key in "abc"] == [None, "B", "C"]


def test_every_memory_forgets_what_was_put_before_a_time_even_if_it_was_used_since():
    first, second = Recent(100), Recent(100)
    first.put("a", 1, 60)
    second.put("b", 2, 30)
    put = time.time()
    assert first.get("a") == 1
    forget_everywhere(before=put - 60)
    assert (first.get("a"), second.get("b"), first.size, second.size) == (1, 2, 60, 30)
    forget_everywhere(before=put + 1)
    assert (first.get("a"), second.get("b"), first.size, second.size) == (None, None, 0, 0)


def test_an_answer_is_made_once_until_it_is_forgotten():
    recent, made = Recent(10), []

    def make():
        made.append(len(made))
        return tuple(made)

    assert recent.get_or_put("a", make) == recent.get_or_put("a", make) == (0,)
    recent.forget(before=time.time() + 1)
    assert recent.get_or_put("a", make) == (0, 1)
