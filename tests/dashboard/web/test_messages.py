import pytest
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_queue import ForwardMsgQueue

from attention_sieve.dashboard.web.messages import deliver_before_fragments

OUTER, INNER = "outer", "inner"


@pytest.fixture
def queue(monkeypatch):
    monkeypatch.setattr(ForwardMsgQueue, "clear", ForwardMsgQueue.clear)
    deliver_before_fragments()
    return ForwardMsgQueue()


def block(*path, fragment=""):
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.delta.add_block.allow_empty = True
    message.delta.fragment_id = fragment
    return message


def known(*path):
    """An element that the browser already has."""
    message = ForwardMsg(ref_hash="hash")
    message.metadata.delta_path.extend(path)
    return message


def text(*path, fragment=""):
    message = ForwardMsg()
    message.metadata.delta_path.extend(path)
    message.delta.new_element.text.body = "text"
    message.delta.fragment_id = fragment
    return message


def fill(queue, *messages):
    for message in messages:
        queue.enqueue(message)


def paths(queue):
    return [tuple(message.metadata.delta_path) for message in queue.flush()]


def test_what_stands_in_a_fragment_comes_after_its_container_where_the_fragment_begins_again_before_all_was_sent(queue):
    fill(queue, block(0, 1, fragment=OUTER), known(0, 1, 0), block(0, 1, 1, fragment=INNER))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[OUTER])
    fill(queue, block(0, 1, fragment=OUTER), known(0, 1, 0))
    assert paths(queue) == [(0, 1), (0, 1, 0), (0, 1, 1), (0, 1), (0, 1, 0)]


def test_what_a_fragment_draws_again_does_not_take_the_place_of_what_it_drew_before(queue):
    fill(queue, block(0, fragment=OUTER), text(0, 0, fragment=OUTER), ForwardMsg(script_finished=0))
    queue.clear(retain_lifecycle_msgs=True, fragment_ids_this_run=[OUTER])
    fill(queue, text(0, 0, fragment=OUTER))
    assert paths(queue) == [(0,), (0, 0), (), (0, 0)]


def test_a_run_of_the_whole_page_takes_the_place_of_what_was_not_sent(queue):
    fill(queue, block(0), text(0, 0), ForwardMsg(script_finished=0))
    queue.clear(retain_lifecycle_msgs=True)
    (left,) = queue.flush()
    assert left.script_finished == ForwardMsg.FINISHED_EARLY_FOR_RERUN
