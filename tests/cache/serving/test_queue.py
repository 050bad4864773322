import pytest

from cache.serving.item_requests import ItemRequest, PassResult
from cache.serving.queue import PATIENCE, Queue
from cache.store.record import Record
from core.attention.settings import PassSettings
from core.errors import AnalysisError, NoTokens, TextTooLong
from core.roles.question import SCORES
from core.texts.text import Text

SETTINGS = (PassSettings(),)
SEEN = PassResult(record=Record.left_out(3))


def wanted(name, truncate=False, start=None):
    return ItemRequest(SCORES, Text((name,)), name, truncate, start, None if start is None else f"{name} {start}")


def submit(queue, *texts, skips=False, indices=None):
    return queue.submit(texts, SETTINGS, indices or range(len(texts)), skips)


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


def test_a_request_that_was_passed_over_too_often_has_its_turn_before_smaller_ones():
    queue = Queue()
    corpus = submit(queue, wanted("a" * 90), wanted("b" * 90))
    for number in range(PATIENCE):
        typed = submit(queue, wanted(f"typed {number}"))
        assert queue.turn() == [typed, corpus]
        finish(queue, *queue.begin(typed.items))
    typed = submit(queue, wanted("typed"))
    assert queue.turn() == [corpus, typed]
    finish(queue, *queue.begin(corpus.items[:1]))
    assert queue.turn() == [typed, corpus]


def test_equal_texts_are_one_item_and_everybody_gets_what_became_of_it():
    queue = Queue()
    one, other = submit(queue, wanted("a")), submit(queue, wanted("b"), wanted("a"))
    assert one.items[0] is other.items[1]
    finish(queue, *one.items)
    assert (one.is_done, other.is_done) == (True, False)
    assert one.answer() == [SEEN]
    assert queue.turn() == [other]


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


def test_what_nobody_waits_for_any_more_is_not_begun():
    queue = Queue()
    leaves, stays = submit(queue, wanted("a"), wanted("b")), submit(queue, wanted("b"))
    queue.withdraw(leaves)
    assert queue.begin(leaves.items) == list(stays.items)
    assert queue.turn() == [stays]


def test_a_withdrawn_text_can_be_asked_for_again():
    queue = Queue()
    first = submit(queue, wanted("a"))
    queue.withdraw(first)
    again = submit(queue, wanted("a"))
    assert queue.begin(again.items) == list(again.items)


def test_an_error_of_one_text_ends_the_requests_that_wait_for_it_and_names_its_place_in_each():
    queue = Queue()
    first = submit(queue, wanted("a"), wanted("bad"))
    second = submit(queue, wanted("bad"), indices=[6])
    other = submit(queue, wanted("c"))
    finish(queue, first.items[1], outcome=NoTokens(None))
    with pytest.raises(NoTokens, match=r"^Text 2 has"):
        first.answer()
    with pytest.raises(NoTokens, match=r"^Text 7 has"):
        second.answer()
    assert queue.turn() == [other]
    assert queue.begin(first.items) == []


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
    assert (left_out.record.n_tokens, left_out.record.arrays) == (50, None)
    with pytest.raises(TextTooLong, match=r"^Text 1 has 50 tokens and this checkpoint takes 40"):
        minds.answer()


def test_status_counts_texts_and_estimates_the_time_of_those_before_too():
    queue = Queue()
    corpus = submit(queue, wanted("a" * 30), wanted("b" * 40))
    before = queue.status(corpus, None)
    assert (before.done, before.total, before.seconds_left, before.n_waiting_before) == (0, 2, None, 0)
    submit(queue, wanted("c" * 10))
    finish(queue, corpus.items[0])
    status = queue.status(corpus, 0.5)
    assert (status.done, status.total, status.n_waiting_before) == (1, 2, 1)
    assert status.seconds_left == 0.5 * ((10 + 40) + (10 + 10))


def test_closing_fails_those_who_wait_and_those_who_come():
    queue = Queue()
    waits, promise = submit(queue, wanted("a")), queue.submit_job(id)
    queue.close()
    for ask in (waits.answer, promise.result, lambda: submit(queue, wanted("b")), lambda: queue.submit_job(id)):
        with pytest.raises(AnalysisError, match="is being closed"):
            ask()


def test_a_look_that_joins_while_the_scores_are_found_waits_on_and_is_not_answered_without_attention():
    queue = Queue()
    scores = submit(queue, wanted("a"))
    look = submit(queue, wanted("a", start=(0, 0)))
    assert queue.finish(dict.fromkeys(scores.items, SEEN)) == list(scores.items)
    assert not scores.is_done
    assert not look.is_done
    with_attention = PassResult(record=SEEN.record, attention={})
    assert queue.finish(dict.fromkeys(scores.items, with_attention)) == []
    assert scores.answer() == look.answer() == [with_attention]


def test_of_a_batch_that_failed_what_nobody_waits_for_is_dropped():
    queue = Queue()
    leaves, stays = submit(queue, wanted("a")), submit(queue, wanted("b"))
    running = queue.begin([*leaves.items, *stays.items])
    queue.withdraw(leaves)
    assert queue.still_wanted(running) == list(stays.items)
    assert submit(queue, wanted("a")).items != leaves.items


def test_a_job_that_nobody_waits_for_any_more_is_not_begun():
    queue = Queue()
    left, waits = queue.submit_job(id), queue.submit_job(id)
    assert left.cancel()
    assert queue.next_job().promise is waits
    assert queue.next_job() is None


def test_texts_are_taken_to_be_prepared_until_they_have_enough_characters():
    queue = Queue()
    request = submit(queue, *(wanted(name * 90) for name in "abcde"))
    assert request.next_unprepared(101) == list(request.items[:2])
    assert request.next_unprepared(100) == [request.items[2]]
    assert request.next_unprepared(10**9) == list(request.items[3:])
