"""Public mode: only the offered checkpoints, no file of the machine, and nothing that trains, keeps or starts."""

import shutil
from pathlib import Path

import pytest

from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, SAMPLE_FINE_TUNING, SAMPLE_TRAINING
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.errors import AnalysisError, CheckpointError
from attention_sieve.core.texts.text import MAX_BYTES
from attention_sieve.dashboard import controls, public, runs
from attention_sieve.dashboard import offers as server_offers
from attention_sieve.dashboard.plain import WORD_JOINER
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.views.training.folders import keep_file


@pytest.fixture
def offers(monkeypatch):

    def open_to_others(*names):
        monkeypatch.setenv(public.PUBLIC, "1")
        monkeypatch.setenv(public.CHECKPOINTS, ":".join(map(str, names)))
        return server_offers.checkpoint_names()

    return open_to_others


@pytest.fixture
def new_inference():
    """One that is opened with the settings of the test, and for it alone."""
    controls.inference.clear()
    yield
    controls.inference.clear()


@pytest.fixture
def models(folders, tmp_path):
    """A folder with a checkpoint, a run with a saved step, and a link that leads out of it."""
    bert = folders("bert")
    for place in ("small", "run", "run/checkpoint-4"):
        shutil.copytree(bert, tmp_path / "models" / place, dirs_exist_ok=True)
    shutil.copytree(bert, tmp_path / "secret")
    (tmp_path / "models" / "out").symlink_to(tmp_path / "secret")
    return tmp_path / "models"


def test_folders_hub_ids_and_the_bundled_checkpoint_are_offered_by_names_that_tell_no_path(offers, models):
    assert offers() == ("bundled",)
    names = offers("bundled", models, "organisation/name", models / "small")
    assert names == ("bundled", "models/run", "models/small", "models/run/checkpoint-4", "organisation/name", "small")
    found = server_offers.offered_checkpoint("models/run/checkpoint-4")
    assert (found.name, found.folder) == ("models/run/checkpoint-4", (models / "run" / "checkpoint-4").resolve())


def test_each_example_is_offered_once_it_is_finished(offers, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "program"))
    place = checkpoints_folder()
    shutil.copytree(folders("bert"), place / SAMPLE_TRAINING / "checkpoint-0")
    shutil.copytree(folders("bert"), place / "private-run")
    assert offers("bundled", "examples") == ("bundled",)
    assert not server_offers.has_decoder()
    for name in (SAMPLE_DECODER, SAMPLE_TRAINING, SAMPLE_FINE_TUNING):
        shutil.copytree(folders("bert"), place / name, dirs_exist_ok=True)
    assert set(offers("bundled", "examples")) == {
        "bundled", SAMPLE_DECODER, SAMPLE_TRAINING, f"{SAMPLE_TRAINING}/checkpoint-0", SAMPLE_FINE_TUNING,
    }  # fmt: skip
    assert server_offers.has_decoder()
    assert offers("bundled") == ("bundled",)


@pytest.mark.parametrize(
    "name",
    ["/etc", "~", ".", "../secret", "models/out", "models/../secret", "secret", "google-bert/bert-base-uncased", ""],
)
def test_every_other_name_is_refused(offers, models, monkeypatch, name):
    offers("bundled", models)
    monkeypatch.chdir(models.parent)
    with pytest.raises(CheckpointError, match=r"^This server offers these checkpoints: bundled, models/run, models/"):
        server_offers.offered_checkpoint(name)


def test_what_is_wrong_with_an_offered_checkpoint_tells_no_path(offers, models):
    offers(models)
    (models / "small" / "config.json").write_text("{broken")
    with pytest.raises(CheckpointError) as error:
        server_offers.offered_checkpoint("models/small")
    assert str(models.parent) not in str(error.value)
    assert str(error.value).startswith("config.json of models/small cannot be read")


def test_nothing_is_started_kept_or_listed(offers, tmp_path, monkeypatch, folders):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    run = shutil.copytree(folders("bert"), checkpoints_folder() / "private-run")
    (run / "progress.jsonl").write_text("")
    offers("bundled")
    with pytest.raises(AnalysisError, match=r"^This server is open to many people, so it trains nothing"):
        runs.begin(tmp_path, ["--help"])
    with pytest.raises(AnalysisError, match=r"^This server is open to many people"):
        keep_file(tmp_path / "kept.txt", b"x")
    assert not (tmp_path / "kept.txt").exists()
    assert server_offers.runs_here() == ()
    assert "private-run" not in server_offers.checkpoint_names()
    with pytest.raises(CheckpointError):
        server_offers.offered_checkpoint("private-run")


ADJECTIVES = ("old", "young", "red", "blue", "big")
PAGES = ("inspect", "roles", "claims", "surface", "grammar", "similarity", "importance", "knowledge", "compare")
ACTIONS = {"train", "train gates", "remove heads", "probe", "erase", "make sample", "make sample tasks", "start"}


def shown(at):
    """All sentences of a page, without the signs that keep Markdown from reading them."""
    parts = (*at.markdown, *at.caption, *at.info, *at.error, *at.warning)
    return " ".join(str(each.value) for each in parts).replace("\\", "").replace(WORD_JOINER, "")


@pytest.mark.parametrize("page", [*PAGES, "fine-tune"])
def test_no_page_offers_an_action_or_tells_a_path(app, offers, store, page):
    offers("bundled")
    at = app(page)
    assert not at.exception
    assert ACTIONS.isdisjoint(button.key for button in at.button)
    assert str(store) not in shown(at)
    assert "Results are kept" not in shown(at)
    assert list(at.selectbox(key="checkpoint").options) == ["bundled"]


def test_a_damaged_results_folder_tells_visitors_its_name_and_the_owner_its_path(
    app, offers, tmp_path, monkeypatch, caplog
):
    folder = tmp_path / "own corpus"
    folder.mkdir()
    (folder / "statistics.safetensors").write_bytes(b"damaged")
    monkeypatch.setenv(server_offers.RESULTS, str(folder))
    offers("bundled")
    at = app("roles", corpus=A_RESULTS_FOLDER, results="own corpus", corpus_text="")
    assert "own corpus/statistics.safetensors is damaged" in shown(at)
    assert str(tmp_path) not in shown(at)
    assert f"{folder}/statistics.safetensors is damaged" in caplog.text
    monkeypatch.delenv(public.PUBLIC)
    assert f"{folder}/statistics.safetensors is damaged" in shown(
        app("roles", corpus=A_RESULTS_FOLDER, results=str(folder), corpus_text="")
    )


@pytest.mark.usefixtures("new_inference")
def test_a_store_that_was_set_aside_tells_visitors_its_name_and_the_owner_its_path(
    app, offers, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    (tmp_path / "results.sqlite").write_bytes(b"damaged" * 1000)
    offers("bundled")
    at = app()
    assert "They were set aside as" in shown(at)
    assert str(tmp_path) not in shown(at)
    assert f"They were set aside as {tmp_path}" in caplog.text
    monkeypatch.delenv(public.PUBLIC)
    assert f"They were set aside as {tmp_path}" in shown(app())
    controls.inference().store.close()


def test_uploads_are_smaller_and_a_corpus_shorter_than_on_a_machine_of_ones_own(offers):
    assert public.upload_megabytes() == MAX_BYTES // 10**6 == 20
    offers("bundled")
    assert public.upload_megabytes() == public.MEGABYTES == 5
    server = (Path(__file__).parents[2] / "Makefile").read_text()
    assert f"--server.maxUploadSize {public.MEGABYTES} " in server


@pytest.mark.usefixtures("new_inference")
def test_a_corpus_of_more_texts_than_a_visitor_may_have_computed_is_refused_in_a_sentence(app, offers, store):
    offers("bundled")
    at = app("roles")
    at.selectbox(key="corpus").select("type texts").run()
    n_passed = controls.inference().n_passed
    texts = [f"The cat number {number} sat down." for number in range(public.MAX_TEXTS + 1)]
    at.text_area(key="corpus_text").set_value("\n".join(texts)).run()
    assert [error.value.replace("\\", "") for error in at.error] == [
        "This server computes at most 500 texts at once, and 501 of these have not been computed before. Choose fewer, "
        "or use Attention Sieve on a machine of your own."
    ]
    assert controls.inference().n_passed == n_passed


@pytest.mark.usefixtures("new_inference")
def test_a_page_that_has_used_its_share_of_the_store_gets_a_sentence_and_another_page_does_not(
    app, offers, store, monkeypatch
):
    offers("bundled")
    monkeypatch.setattr(public, "SHARE", 1.1e-3)  # 2.36 MB: the example and its finding, and some texts of 34 kB
    visitor = ["first"]
    monkeypatch.setattr(controls, "visitor", lambda: visitor[0])  # AppTest gives all sessions one name
    at = app("inspect")
    assert not at.error
    new = (f"The {one} dog sleeps and the {other} cat sleeps." for one in ADJECTIVES for other in ADJECTIVES)
    while not at.error:
        at.text_area(key="text").set_value(next(new)).run()
    (error,) = at.error
    assert "which is the limit for one page on this server" in error.value
    at.text_area(key="text").set_value("The old dog sleeps and the old cat sleeps.").run()
    assert not at.error
    visitor[0] = "second"
    at.text_area(key="text").set_value(next(new)).run()
    assert not at.error


def test_a_link_to_another_checkpoint_opens_nothing_and_the_page_says_so(app, offers, models):
    offers("bundled", models)
    at = app(checkpoint=str(models / "small"))
    assert not at.exception
    assert at.session_state["checkpoint"] == "bundled"
    assert [each.value for each in at.warning if each.value.startswith("The link asks for checkpoint")]
