import pytest

from attention_sieve.cache.answers import ItemRequest, Record
from attention_sieve.cache.serving.queue import Queue
from attention_sieve.cache.serving.requests import SHORT_CHARACTERS
from attention_sieve.cache.serving.shares import HALF_LIFE_SECONDS, STEP_SECONDS
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import NoTokens, TextTooLong
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.similarity.analysis import distance_question
from attention_sieve.core.similarity.distances import USUAL_DISTANCES
from attention_sieve.core.texts.text import Text

SETTINGS = (PassSettings(),)
DISTANCES = distance_question(USUAL_DISTANCES)
SEEN = Record.left_out(3)


class Clock:
    """Stands still unless it is moved."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


def wanted(name, truncate=False, start=None, question=SCORES):
    return ItemRequest(question, Text((name,)), name, truncate, start, None if start is None else f"{name} {start}")


def submit(queue, *texts, skips=False, indices=None, visitor=None):
    return queue.submit(texts, SETTINGS, indices or range(len(texts)), visitor, skips=skips)


def serve(queue, seconds, n_texts=1, urgent=False):
    """What a worker does: a batch of the request whose turn it is, and its model time charged."""
    request = queue.turn(urgent=urgent)[0]
    batch = queue.begin([item for item in request.items if item.can_begin][:n_texts])
    queue.charge_batch(batch, seconds)
    finish(queue, *batch)
    return request


def finish(queue, *items, outcome=SEEN):
    queue.finish(dict.fromkeys(items, outcome))


def test_the_request_with_least_left_has_its_turn_first_and_equal_ones_in_the_order_they_came():
    queue = Queue()
    long, first, second = submit(queue, wanted("a" * 90)), submit(queue, wanted("b")), submit(queue, wanted("c"))
    assert queue.turn() == [first, second, long]


def test_what_is_left_counts_not_what_was_asked():
    queue = Queue()
    corpus = submit(queue, *(wanted(f"text {i}") for i in range(4)))
    two = submit(queue, wanted("one text"), wanted("other text"))
    assert queue.turn() == [two, corpus]
    finish(queue, *corpus.items[:3])
    assert queue.turn() == [corpus, two]


def test_two_visitors_get_equal_model_time_whatever_their_texts_cost_and_however_many_requests_they_send():
    clock = Clock()
    queue, seconds = Queue(clock), {"dear": 0.0, "cheap": 0.0}
    for number in range(10):
        submit(queue, *(wanted(f"dear {number} {text}") for text in range(50)), visitor="dear")
    submit(queue, *(wanted(f"cheap {text} {'a' * 900}") for text in range(500)), visitor="cheap")
    for _ in range(200):
        visitor = queue.turn()[0].visitor
        cost = 2.0 if visitor == "dear" else 0.1
        clock.seconds += cost
        seconds[visitor] += cost
        serve(queue, cost)
    assert abs(seconds["cheap"] - seconds["dear"]) < 2 * 2.0 < 0.2 * sum(seconds.values())


def test_model_time_counts_for_less_the_longer_ago_it_was():
    clock = Clock()
    queue = Queue(clock)
    submit(queue, wanted("a"), visitor="early")
    assert serve(queue, 4.0).visitor == "early"
    assert queue.turn() == []
    clock.seconds += 2 * HALF_LIFE_SECONDS
    submit(queue, wanted("b"), visitor="early")
    submit(queue, *map(wanted, "cde"), visitor="late")
    assert serve(queue, 0.9).visitor == "late"
    assert queue.turn()[0].visitor == "late"
    assert serve(queue, 0.2).visitor == "late"
    assert queue.turn()[0].visitor == "early"


def test_nobody_waits_for_ever_while_new_visitors_come():
    clock = Clock()
    queue = Queue(clock)
    waits, n_served = submit(queue, *map(wanted, "ab"), visitor="waits"), 0
    serve(queue, 1.0)
    for number in range(2):
        submit(queue, wanted(f"first of {number}"), visitor=number)
    while queue.turn()[0] is not waits:
        submit(queue, wanted(f"text {n_served}"), visitor=2 + n_served)
        clock.seconds += STEP_SECONDS
        serve(queue, STEP_SECONDS)
        n_served += 1
        assert n_served < 50
    assert n_served > 3


def test_the_cost_of_a_text_is_shared_by_those_who_wait_for_it():
    queue = Queue(Clock())
    for visitor in ("one", "other"):
        submit(queue, wanted("same"), wanted(f"own text of {visitor}"), visitor=visitor)
    submit(queue, wanted("another"), wanted("last"), visitor="third")
    queue.charge(["third"], 0.6)
    serve(queue, 1.0)
    assert [request.visitor for request in queue.turn()] == ["one", "other", "third"]
    queue.charge(["other"], 0.2)
    assert [request.visitor for request in queue.turn()] == ["one", "third", "other"]


def test_a_text_on_screen_is_urgent_and_so_is_one_that_is_known_to_be_cheap():
    queue = Queue()
    corpus = submit(queue, *map(wanted, "abc"))
    look, unknown = submit(queue, wanted("look", start=(0, 0))), submit(queue, wanted("one text"))
    assert (queue.turn(urgent=True), unknown.is_urgent) == ([look], False)
    queue.paces.note("scores", 1.0, 1000)
    cheap, dear = submit(queue, wanted("other text")), submit(queue, wanted("a" * 1000))
    assert (corpus.is_urgent, cheap.is_urgent, dear.is_urgent) == (False, True, False)
    assert queue.turn(urgent=True) == [look, cheap]


def test_a_long_text_on_screen_is_not_urgent_so_that_a_short_one_interrupts_it():
    queue = Queue(Clock())
    long = submit(queue, wanted("a" * (SHORT_CHARACTERS + 1), start=(0, 0)), visitor="types pages")
    short = submit(queue, wanted("a" * SHORT_CHARACTERS, start=(0, 0)), visitor="types a sentence")
    assert (long.is_urgent, short.is_urgent) == (False, True)
    assert queue.turn(urgent=True) == [short]


def test_of_urgent_requests_the_visitor_comes_first_who_has_had_least_model_time():
    queue = Queue(Clock())
    flood = [submit(queue, wanted(f"{number}", start=(0, 0)), visitor="floods") for number in range(30)]
    queue.charge(["floods"], 0.1)
    typed = submit(queue, wanted("a sentence that is longer", start=(0, 0)), visitor="types")
    assert queue.turn(urgent=True) == [typed, *flood]


def test_what_is_in_a_batch_already_is_not_urgent_for_another():
    queue = Queue()
    queue.paces.note("scores", 1.0, 1000)
    corpus = submit(queue, *map(wanted, "ab"))
    queue.begin(corpus.items)
    submit(queue, wanted("a"))
    assert not queue.has_urgent
    submit(queue, wanted("a", start=(0, 0)))
    assert queue.has_urgent


def test_a_job_has_its_turn_by_the_model_time_of_its_visitor():
    queue = Queue(Clock())
    corpus = submit(queue, *map(wanted, "abc"), visitor="reads")
    jobs = [queue.submit_job(id, "works") for _ in range(2)]
    assert queue.next_job(urgent=False) is jobs[0]
    queue.charge(["works"], 5.0)
    assert (queue.next_job(urgent=False), queue.turn()) == (None, [corpus])
    queue.charge(["reads"], 6.0)
    assert queue.next_job(urgent=False) is jobs[1]


def test_an_urgent_job_goes_before_any_other():
    queue = Queue(Clock())
    job, urgent = queue.submit_job(id, "works"), queue.submit_job(id, "types", is_urgent=True)
    assert queue.has_urgent
    queue.charge(["types"], 5.0)
    assert queue.next_job(urgent=True) is urgent
    assert not queue.has_urgent
    assert queue.next_job(urgent=True) is None
    assert queue.next_job(urgent=False) is job


def test_a_text_that_may_be_cut_is_another_item_than_one_that_may_not():
    queue = Queue()
    assert submit(queue, wanted("a")).items != submit(queue, wanted("a", truncate=True)).items


def test_what_was_seen_is_joined_until_it_is_forgotten():
    queue = Queue()
    first = submit(queue, wanted("a"))
    finish(queue, *first.items)
    assert submit(queue, wanted("a")).answer() == [SEEN]
    queue.forget(first.items)
    assert not submit(queue, wanted("a")).is_done


def test_a_look_joins_the_scores_that_wait_and_scores_join_a_look():
    queue = Queue()
    scores, look = submit(queue, wanted("a")), submit(queue, wanted("a", start=(0, 0)))
    later = submit(queue, wanted("a"))
    assert scores.items == look.items == later.items
    assert scores.items[0].item_request.start == (0, 0)


def test_a_look_cannot_join_scores_that_are_being_passed_nor_a_look_elsewhere():
    queue = Queue()
    scores = submit(queue, wanted("a"))
    queue.begin(scores.items)
    look = submit(queue, wanted("a", start=(0, 0)))
    elsewhere = submit(queue, wanted("a", start=(8, 0)))
    assert len({scores.items, look.items, elsewhere.items}) == 3
    assert scores.items[0].item_request.start is None


def test_a_withdrawn_text_can_be_asked_for_again():
    queue = Queue()
    first = submit(queue, wanted("a"))
    queue.withdraw(first)
    again = submit(queue, wanted("a"))
    assert queue.begin(again.items) == list(again.items)


def test_the_first_of_several_bad_texts_is_named():
    queue = Queue()
    request = submit(queue, *map(wanted, "abc"))
    queue.finish({request.items[1]: NoTokens(None), request.items[2]: NoTokens(None)})
    with pytest.raises(NoTokens, match=r"^Text 2 has"):
        request.answer()


def test_a_long_text_is_left_out_for_those_who_skip_and_an_error_for_the_others():
    queue = Queue()
    skips, minds = submit(queue, wanted("a"), skips=True), submit(queue, wanted("a"))
    finish(queue, *skips.items, outcome=TextTooLong(None, 50, 40))
    (left_out,) = skips.answer()
    assert (left_out.n_tokens, left_out.arrays) == (50, None)
    with pytest.raises(TextTooLong, match=r"^Text 1 has 50 tokens and this checkpoint takes 40"):
        minds.answer()


def test_status_counts_texts_and_estimates_the_time_of_those_before_too():
    queue = Queue()
    corpus = submit(queue, wanted("a" * 30), wanted("b" * 40))
    before = queue.status(corpus)
    assert (before.done, before.total, before.seconds_left, before.n_waiting_before) == (0, 2, None, 0)
    submit(queue, wanted("c" * 10))
    finish(queue, corpus.items[0])
    queue.paces.note("scores", 0.5, 1)
    status = queue.status(corpus)
    assert (status.done, status.total, status.n_waiting_before) == (1, 2, 1)
    assert status.seconds_left == 0.5 * ((10 + 40) + (10 + 10))


def test_an_estimate_knows_the_pace_of_each_question_and_that_others_get_equal_shares():
    queue = Queue()
    own = submit(queue, wanted("a" * 30), wanted("b" * 30), visitor="own")
    submit(queue, wanted("c" * 40), wanted("d" * 90, question=DISTANCES), visitor="other")
    submit(queue, wanted("e" * 90, question=DISTANCES), wanted("f" * 90, question=DISTANCES), visitor="third")
    queue.paces.note("scores", 1.0, 10)
    assert queue.status(own).seconds_left is None
    queue.paces.note(DISTANCES.name, 50.0, 10)
    own_seconds = 8.0
    assert queue.status(own).seconds_left == own_seconds + own_seconds + own_seconds
    queue.charge(["own"], 9.0)
    submit(queue, wanted("g" * 20), visitor="fourth")
    assert queue.status(own).seconds_left == 3 * own_seconds + 3.0


def test_while_the_first_pace_of_a_question_is_noted_nothing_is_estimated_from_it():
    queue, read = Queue(), []

    class TenCharacters:
        """A number; while it is divided by, another thread reads the pace."""

        def __rtruediv__(self, seconds):
            read.append(queue.paces.of("scores"))
            return seconds / 10

    queue.paces.note("scores", 1.0, TenCharacters())
    assert read == [None]
    assert queue.paces.of("scores") == 0.1


def test_of_a_batch_that_failed_what_nobody_waits_for_is_dropped():
    queue = Queue()
    leaves, stays = submit(queue, wanted("a")), submit(queue, wanted("b"))
    running = queue.begin([*leaves.items, *stays.items])
    queue.withdraw(leaves)
    assert queue.still_wanted(running) == list(stays.items)
    assert submit(queue, wanted("a")).items != leaves.items


def test_texts_are_taken_to_be_prepared_until_they_have_enough_characters():
    queue = Queue()
    request = submit(queue, *(wanted(name * 90) for name in "abcde"))
    assert request.next_unprepared(101) == list(request.items[:2])
    assert request.next_unprepared(100) == [request.items[2]]
    assert request.next_unprepared(10**9) == list(request.items[3:])
