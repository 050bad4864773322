"""The page Laboratory, and its lesson, with a model that was trained for this; and what a public server shows of it."""

import re
import shutil
from base64 import b64decode

import numpy as np
import pytest
import torch
from laboratory_figures import FIGURES
from laboratory_model import learn_to_copy
from reading import button, charts, sent, told
from torch.nn.utils.rnn import pad_sequence
from transformers import AutoModelForCausalLM

from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING, SAMPLE_TRAINING
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.importance.backup_analysis import BACKUP_ANALYSIS
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.laboratory.sequences import is_copied
from attention_sieve.core.laboratory.settings import N_HEADS, N_LAYERS
from attention_sieve.core.laboratory.training import untrained_model
from attention_sieve.core.running import Journal, ValidationResult
from attention_sieve.dashboard import public, runs, trainings
from attention_sieve.dashboard.controls import corpus_of_probes, is_pair_here
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.laboratory.numbers import MOST_STEPS, drawn_steps
from attention_sieve.dashboard.views.lessons.plans import BIRTH, FINE_TUNING, LESSONS, offered
from attention_sieve.dashboard.views.training.folders import made_here

WAIT_SECONDS = 60


@pytest.fixture(scope="module")
def learnt(tmp_path_factory):
    """Folder of a model that has learnt to copy."""
    return learn_to_copy(tmp_path_factory.mktemp("laboratory") / "learnt")


@pytest.fixture
def here(learnt, store):
    """The same among the runs of this machine."""
    folder = checkpoints_folder() / "learnt"
    shutil.copytree(learnt, folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def alone(store):
    """As in a program that has begun no run; what a test began is ended."""
    runs.end()
    yield
    runs.end()
    shutil.rmtree(checkpoints_folder(), ignore_errors=True)


def held(at):
    """Names of the heads with each role, by its letter, as the grid was sent them."""
    grid = sent(at, "Heads of learnt/checkpoint-")
    n_cells = N_LAYERS * N_HEADS
    states = np.frombuffer(b64decode(grid["states"]), dtype=np.uint8).reshape(-1, n_cells)
    return {look["letter"]: set(np.flatnonzero(row).tolist()) for look, row in zip(grid["roles"], states)}


def metric(at, label):
    return next(each for each in at.metric if each.label == label)


def test_the_last_step_has_induction_heads_and_the_slider_goes_back_to_the_untrained_model(app, here):
    at = app("laboratory")
    roles = held(at)
    assert roles["I"]
    assert all(cell >= N_HEADS for cell in roles["I"])
    assert f"{len(roles['I'])} head" in told(at)
    assert "**induction heads**" in told(at)
    assert "ruler" not in told(at)
    assert float(metric(at, wording.COPIED).value) < 1
    assert at.select_slider(key="at").options == ["0", "110", "220"]
    at.select_slider(key="at").set_value("0").run()
    assert not any(held(at).values())
    assert wording.NO_COPIES in told(at)
    assert float(metric(at, wording.COPIED).value) == pytest.approx(np.log(128), abs=0.1)


def test_the_finding_is_what_the_losses_without_heads_carry():
    guess = np.log(128)
    for n_copying, losses, said in (
        (0, (guess, guess, guess), wording.NO_COPIES_DRAWN),
        (1, (0.1, 3.0, 3.0), "One head carries the copying: without it the model hardly copies."),
        (4, (0.02, 0.15, 5.54), "4 heads carry the copying, so losing one costs little."),
        (2, (0.02, 2.1, 5.0), "2 heads carry the copying, and without one of them it is clearly worse."),
        (2, (4.0, 4.1, 4.2), "2 heads look at the copies, but the model does not yet rest on that."),
    ):
        assert wording.finding(n_copying, losses) == said
        assert len(said.split()) <= 20
    assert wording.losses(4, (0.02, 0.15, 5.54)).endswith(
        "0.02 nats; without one of them at most 0.15, without all 5.54."
    )


def test_the_page_begins_with_what_the_copying_rests_on_in_this_step(app, here):
    found = next(each.value for each in app("laboratory").markdown if "Loss of copied tokens" in each.value)
    loss, *_, without_all = (float(number) for number in re.findall(r"\d+\.\d+", found))
    assert loss < 1 < without_all
    untrained = app("laboratory", at="0")
    assert any(wording.NO_COPIES_DRAWN in each.value for each in untrained.markdown)


def test_heads_that_stand_in_for_one_another_are_named_with_what_is_lost_without_all(app, here):
    first, last = (find_checkpoint(str(here / f"checkpoint-{step}")) for step in (0, 220))
    texts = tuple(map(LabelledText, corpus_of_probes(first, "repeats")))
    found = find(BACKUP_ANALYSIS, load_checkpoint(last, device="cpu"), texts)
    sentences = [
        wording.stand_ins(
            found.sets[index],
            found.effects.together[index],
            found.effects.most_alone[index],
            found.effects.p[index],
        )
        for index in found.redundant[:1]
    ]
    shown = [each.value for each in app("laboratory").markdown if "stand in for one another" in each.value]
    assert sentences
    assert shown == sentences
    assert wording.stand_ins(((1, 0), (1, 2)), 5.1, 0, float("nan")).startswith(
        "L1 H0, L1 H2 may stand in for one another"
    )
    assert wording.stand_ins(((1, 0), (1, 2)), 5.123, -0.1, 0.01) == (
        "L1 H0, L1 H2 stand in for one another: without all of them the loss rises by 5.1 nats, without one of them "
        "hardly at all."
    )


def test_the_saved_steps_are_played_from_the_first_on_until_stopped(app, here):
    at = app("laboratory")
    at.button(key="play").click().run()
    assert at.select_slider(key="at").value == "0"
    assert at.button(key="play").label == wording.STOP_FILM
    at.button(key="play").click().run()
    assert at.select_slider(key="at").value == "0"
    assert at.button(key="play").label == wording.PLAY


def test_heads_that_are_off_raise_the_loss_of_copies(app, here):
    at = app("laboratory")
    before = float(metric(at, wording.COPIED).value)
    at.pills[0].set_value([f"L1 H{head}" for head in range(N_HEADS)]).run()
    after = metric(at, wording.COPIED)
    assert float(after.value) > before + 2
    assert float(after.delta) == pytest.approx(float(after.value) - before, abs=0.02)
    assert "%" in metric(at, wording.PREDICTED).value


def test_patterns_come_with_the_text_and_its_copied_tokens(app, here):
    at = app("laboratory", patterns="true")
    assert sent(at, "Heads of learnt/checkpoint-220")["patterns"]
    line = next(each.value for each in at.caption if "could be known" in each.value)
    assert line.count("**") == 2 * 3 * 8, "three copies of nine tokens, of each the last eight"


def test_runs_of_the_laboratory_are_no_fine_tuning_runs_and_no_pair_with_the_bundled_checkpoint(here):
    assert [run.name for run in laboratory_runs()] == ["learnt"]
    assert "learnt" not in [run.name for run in made_here()]
    assert not is_pair_here()


def test_a_stored_step_and_what_it_looks_at_open_on_other_pages(app, here):
    for page in ("inspect", "roles"):
        at = app(page, checkpoint="learnt/checkpoint-220", corpus="probe texts: repeats", corpus_text=None)
        assert not at.error


def test_the_steps_of_a_run_are_compared_in_order(app, here):
    steps = [f"learnt/checkpoint-{step}" for step in (110, 220)]
    at = app("compare", checkpoint="learnt/checkpoint-0", corpus="probe texts: repeats", corpus_text=None)
    assert not at.error
    next(each for each in at.button if each.key == "all steps learnt").click().run()
    assert at.session_state["with"] == ["learnt/checkpoint-0", *steps]
    other = app("compare", corpus_text="One text.")
    assert "all steps learnt" not in {each.key for each in other.button}


def test_a_run_is_trained_watched_stopped_and_deleted_on_the_page(app, alone):
    at = app("laboratory")
    assert wording.NO_RUN in told(at)
    at.number_input(key="laboratory seed").set_value(7)
    button(at, wording.TRAIN).click().run()
    assert trainings.running() == "repeats-drawn-seed-7"
    folder = trainings.folder("repeats-drawn-seed-7")
    assert "stop laboratory" in {each.key for each in at.button}
    assert wording.TRAIN not in {each.label for each in at.button}
    at = app("fine-tune")
    assert "repeats-drawn-seed-7" in told(at)
    assert "only one run is possible at a time" in told(at)
    runs.stop(folder)
    runs._programs[folder].process.wait(WAIT_SECONDS)
    assert runs.look(folder).state == "stopped"
    at = app("laboratory")
    resume = [each.label for each in at.button if each.key == "resume laboratory"]
    if runs.look(folder).saved:
        assert resume == ["Resume repeats-drawn-seed-7"]
        next(each for each in at.button if each.key == "delete laboratory").click().run()
        assert wording.NO_RUN in told(at)


@pytest.mark.parametrize(("key", "begun"), [("train", "repeats-drawn"), ("resume laboratory", "learnt")])
def test_beside_a_run_that_is_shown_another_is_begun_and_a_stopped_one_goes_on(app, alone, here, key, begun):
    if begun == here.name:
        with Journal(here, "", 110) as journal:
            journal.plan(220)
            journal.held_out(ValidationResult(110, 4.0, 0.1, None))
            journal.end("stopped")
    at = app("laboratory")
    at.button(key=key).click().run()
    assert trainings.running() == begun
    assert held(at)["I"], "the run that is there stays on the page meanwhile"


def test_what_is_stored_of_another_version_cannot_be_resumed_but_is_shown(app, here):
    with Journal(here, "", 110) as journal:
        journal.plan(220)
        journal.held_out(ValidationResult(110, 4.0, 0.1, None))
        journal.end("failed", "<b>The disk</b> is full.")
    (here / "training.json").write_text("{}")
    at = app("laboratory")
    assert "<b>The disk</b> is full." in told(at)
    assert "resume laboratory" not in {each.key for each in at.button}


def test_a_link_to_what_there_is_not_shows_what_there_is(app, here):
    at = app("laboratory", at="55", model="no-such", without="L9 H9", probes="<b>")
    assert held(at)["I"]


def test_a_public_server_shows_what_its_owner_offers_and_trains_nothing(app, learnt, store, monkeypatch):
    monkeypatch.setenv(public.PUBLIC, "1")
    at = app("laboratory")
    assert public.NOT_HERE in told(at)
    monkeypatch.setenv(public.CHECKPOINTS, f"bundled:{learnt}")
    at = app("laboratory")
    assert held(at)["I"]
    assert {"train", "delete laboratory"}.isdisjoint(each.key for each in at.button)


def test_a_class_has_the_last_two_lessons_once_their_examples_are_made_and_none_can_be_changed(
    app, learnt, store, monkeypatch
):
    monkeypatch.setenv(public.PUBLIC, "1")
    monkeypatch.setenv(public.CHECKPOINTS, "bundled:examples")
    assert offered() == (1, 2, 3, 4, 5)
    examples = [checkpoints_folder() / name for name in (SAMPLE_TRAINING, SAMPLE_FINE_TUNING)]
    shutil.copytree(learnt, examples[0])
    shutil.copytree(find_checkpoint("bundled").folder, examples[1])
    try:
        assert offered() == tuple(range(1, len(LESSONS) + 1))
        at = app("laboratory", lesson=str(BIRTH), step="6")
        assert "One head builds on another" in told(at)
        assert {"train", "delete laboratory"}.isdisjoint(each.key for each in at.button)
        assert "Here are two: first the one that you use" in told(app("compare", lesson=str(FINE_TUNING), step="1"))
    finally:
        for folder in examples:
            shutil.rmtree(folder)


# The lesson


def test_a_predicted_head_and_a_predicted_number_stand_beside_the_answers(app, here):
    at = app("laboratory", lesson=str(BIRTH), step="3", said="0-0")
    assert re.search(r"You said L0 H0 \(\d+%\): not yet\.", told(at))
    found = re.search(r"(L1 H\d): it gives (\d+)% of its attention to what came after", told(at))
    assert found
    assert int(found[2]) > 50
    right = app("laboratory", lesson=str(BIRTH), step="3", said=found[1].replace("L", "").replace(" H", "-"))
    assert f"You said {found[1]} ({found[2]}%): right." in told(right)
    for said, verdict in (("99", "right"), ("95", "close"), ("89", "close"), ("50", "not yet")):
        at = app("laboratory", lesson=str(BIRTH), step="5", said=said)
        assert f"You said {said}%: {verdict}." in told(at)


def predicted_share_and_loss(folder, texts, off):
    """Of the tokens that a text itself gives away, by transformers alone, with what these heads hand on at zero."""
    model = AutoModelForCausalLM.from_pretrained(folder)
    size = model.config.hidden_size // model.config.num_attention_heads
    for layer, head in off:
        projection = model.model.layers[layer].self_attn.o_proj
        projection.weight.data[:, head * size : (head + 1) * size] = 0
    rows = [torch.tensor([int(token) for token in text.segments[0].split()]) for text in texts]
    ids = pad_sequence(rows, batch_first=True)  # no token sees what comes after it
    known = pad_sequence([torch.tensor(is_copied(row.tolist())) for row in rows], batch_first=True)[:, 1:]
    with torch.no_grad():
        logits, copied = model(ids).logits[:, :-1][known], ids[:, 1:][known]
    right = (logits.argmax(-1) == copied).double().mean()
    return float(right), float(torch.nn.functional.cross_entropy(logits, copied))


def test_lesson_7_says_what_losing_one_all_and_the_previous_token_head_costs(app, here):
    """Recomputed by transformers alone from the heads that the lesson names."""
    said = told(app("laboratory", lesson=str(BIRTH), step="5")).replace("*", "")
    one, of_one, known, all_of, of_all, before, of_before = re.search(
        r"Without (L1 H\d): (\d+)%, and with all heads on (\d+)%\. Without all that look at the copies \((.*?)\): "
        r"(\d+)%\. And without (L0 H\d) in the layer below, which gives \d+% of its attention to .*?: (\d+)%",
        said,
    ).groups()
    texts = corpus_of_probes(find_checkpoint(str(here / "checkpoint-220")), "repeats")
    heads = [[], *(re.findall(r"L(\d) H(\d)", names) for names in (one, all_of, before))]
    off = [[tuple(map(int, head)) for head in of_case] for of_case in heads]
    shares, losses = zip(*(predicted_share_and_loss(here / "checkpoint-220", texts, of_case) for of_case in off))
    assert [round(100 * share) for share in shares] == [int(number) for number in (known, of_one, of_all, of_before)]
    alone = {
        name: predicted_share_and_loss(here / "checkpoint-220", texts, [head])[1]
        for name, head in zip(heads[2], off[2])
    }
    assert max(alone, key=alone.get) == heads[1][0], "the one without which the model is surprised most"
    assert len(heads[2]) == 4, "all heads of the upper layer carry the copying, so losing one costs little"
    assert shares[1] > 0.95 > 0.1 > shares[2]
    named = re.findall(r"\d+\.\d\d", told(app("laboratory", lesson=str(BIRTH), step="6")))
    np.testing.assert_allclose([float(loss) for loss in named[:4]], losses, atol=0.006)
    counted = told(app("laboratory", lesson=str(BIRTH), step="3"))
    assert f"4 of {N_LAYERS * N_HEADS} heads do it" in counted


def test_lesson_7_says_what_its_heads_look_at_in_the_text_on_screen(app, here):
    """Recomputed by transformers alone."""
    folder = here / "checkpoint-220"
    first = corpus_of_probes(find_checkpoint(str(folder)), "repeats")[0]
    ids = [int(token) for token in first.segments[0].split()]
    model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    with torch.no_grad():
        attention = torch.cat(model(torch.tensor([ids]), output_attentions=True).attentions).numpy()
    after_copy = np.equal.outer(ids, [None, *ids[:-1]]) & np.tri(len(ids), dtype=bool)
    looks = after_copy.any(1)
    shares = (attention * after_copy)[:, :, looks].sum(-1).mean(-1)
    even = (after_copy.sum(1) / np.arange(1, len(ids) + 1))[looks].mean()
    layer, head = np.unravel_index(shares.argmax(), shares.shape)
    assert (
        f"Most of all in this text L{layer} H{head}: it gives {100 * shares.max():.0f}% of its attention to what came "
        f"after the earlier copies; even attention would give {100 * even:.0f}%."
    ) in told(app("laboratory", lesson=str(BIRTH), step="3")).replace("*", "")
    back = attention[0, :, np.arange(1, len(ids)), np.arange(len(ids) - 1)].mean(0)
    said = told(app("laboratory", lesson=str(BIRTH), step="5")).replace("*", "")
    assert f"L0 H{back.argmax()} in the layer below, which gives {100 * back.max():.0f}% of its attention" in said
    said = told(app("laboratory", lesson=str(BIRTH), step="1")).replace("*", "")
    assert f"small model of {N_LAYERS} layers and {shares.size} heads" in said


def test_the_first_step_draws_the_curve_up_to_the_step_that_is_shown_and_names_no_head(app, here):
    at = app("laboratory", lesson=str(BIRTH), step="1")
    assert sent(at, "Heads of")["chosen"] == [[0, 0]]
    assert "strongest head" not in told(at)
    (curve,) = charts(at)
    assert curve["step"].max() == 0
    at.select_slider(key="at").set_value("110").run()
    assert charts(at)[0]["step"].max() == 110


def test_the_lesson_asks_nothing_without_a_trained_model_and_while_one_is_trained(app, here):
    with Journal(here, "", 110) as journal:
        journal.plan(220)
        for step in ("1", "2", "4", "8"):
            at = app("laboratory", lesson=str(BIRTH), step=step)
            assert "it is being trained now. The lesson goes on when that is done." in told(at)
            assert not [each for each in at.button if each.key == "lesson guess it"]
            assert not at.radio
        journal.end("finished")


# The figure


def test_the_figure_names_the_strongest_heads():
    figure = FIGURES["formation"]
    assert "Loss 4.85 nats at step 0, 1.85 nats at step 30." in figure.description
    assert "Previous token: -0.02 (L0 H0) at step 0, 0.71 (L0 H2) at step 30." in figure.description
    points = figure.data[figure.data["kind"] == "share"]
    assert points[points["step"] == 30][["role", "head"]].to_numpy().tolist() == [
        ["previous", "L0 H2"], ["induction", "L1 H1"], ["duplicate", "L1 H2"]
    ]  # fmt: skip


def test_many_saved_steps_are_drawn_evenly_from_the_first_to_the_last():
    saved = list(range(0, 3_001, 10))
    drawn = drawn_steps(saved)
    assert (len(drawn), drawn[0], drawn[-1]) == (MOST_STEPS, 0, 3_000)
    assert np.ptp(np.diff(drawn)) <= 10
    assert drawn_steps(saved[:5]) == saved[:5]


def test_the_notes_name_the_number_of_parameters():
    model = untrained_model()
    assert wording.NUMBERS["parameters"] == f"{sum(weight.numel() for weight in model.parameters()):,}"
