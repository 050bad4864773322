"""What every command shares: one way to write a file, and bounds on what is read."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.commands import check_output, make_folder, write, write_table, write_whole
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.texts.text import MAX_BYTES, read_bytes

MADE_COMMANDS = [analysis for analysis in ANALYSES if analysis.usage.command is not None]

CODE = Path(__file__).parents[2] / "core"
FULL = OSError(28, "No space left on device")


def half_then_full(path):
    path.write_text("half")
    raise FULL


def test_an_older_file_stays_whole_where_the_disk_fills_up(tmp_path):
    output = tmp_path / "found.csv"
    output.write_text("older")
    with pytest.raises(AnalysisError, match=r"found.csv cannot be written \(No space left on device\)"):
        write(output, half_then_full)
    assert output.read_text() == "older"
    assert list(tmp_path.iterdir()) == [output]


def test_a_file_has_its_name_only_once_it_is_whole(tmp_path):
    output, seen = tmp_path / ("x" * 250), []

    def watched(path):
        path.write_text("new")
        seen.append((path.suffix, output.exists(), path.parent))

    write_whole(output, watched)
    assert seen == [(".part", False, tmp_path)]
    assert output.read_text() == "new"
    assert list(tmp_path.iterdir()) == [output]


def test_a_link_is_followed_and_rights_are_kept(tmp_path):
    there, link = tmp_path / "there.csv", tmp_path / "link.csv"
    there.write_text("older")
    there.chmod(0o600)
    link.symlink_to(there)
    write_table(link, pd.DataFrame({"a": [1]}), {"from": "x"})
    assert link.is_symlink()
    assert there.read_text() == "a,from\n1,x\n"
    assert there.stat().st_mode & 0o777 == 0o600


def test_devices_are_written_to_as_they_are():
    write(Path("/dev/null"), lambda path: path.write_text("x"))
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("link", [os.link, os.symlink])
def test_an_output_that_is_an_input_is_refused_under_any_name(link, tmp_path):
    texts, output = tmp_path / "texts.csv", tmp_path / "output.csv"
    texts.write_text("text\n")
    link(texts, output)
    with pytest.raises(AnalysisError, match="is also another file of this command"):
        check_output(output, others=[texts])


def test_pipes_and_long_names_are_refused_in_a_sentence(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(AnalysisError, match="is a pipe"):
        check_output(tmp_path / "pipe.csv")
    with pytest.raises(AnalysisError, match=r"File name too long") as caught:
        check_output(tmp_path / ("n" * 300 + ".csv"))
    assert len(str(caught.value)) < 200
    with pytest.raises(AnalysisError, match="cannot be made"):
        make_folder(Path("/dev/null/folder"))


def test_what_has_no_end_is_read_no_further_than_allowed(tmp_path):
    with pytest.raises(TextError, match=f"larger than {MAX_BYTES // 10**6} MB"):
        read_bytes(Path("/dev/zero"))
    whole = tmp_path / "whole.txt"
    whole.write_bytes(b"x" * MAX_BYTES)
    assert len(read_bytes(whole)) == MAX_BYTES


def test_nothing_in_core_writes_a_result_but_through_the_gate():
    """Tables are made by a function that `write` calls with the name of an unfinished file."""
    for path in CODE.rglob("command.py"):
        for line in path.read_text("utf-8").splitlines():
            if any(call in line for call in (".to_csv(", ".to_parquet(", ".write_bytes(")):
                assert "path" in line, f"{path.name}: {line}"


@pytest.mark.parametrize(("sent", "code", "said"), [(signal.SIGINT, 130, "Stopped.\n"), (signal.SIGTERM, -15, "")])
def test_a_command_that_is_ended_leaves_one_line_and_no_half_file(sent, code, said, tmp_path):
    # A shell lets what it runs in the background ignore Ctrl+C, and the tests may run there.
    script = (
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, time; from pathlib import Path\n"
        "import attention_sieve.__main__ as main; from attention_sieve.core.commands import write\n"
        "def slow(path): path.write_text('half'); print('begun', flush=True); time.sleep(60)\n"
        "main.main = lambda: write(Path(sys.argv[1]), slow)\n"
        "sys.exit(main._entry())"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "found.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CODE.parent) as run:
        assert run.stdout.readline() == "begun\n"
        time.sleep(0.1)
        run.send_signal(sent)
        assert run.communicate(timeout=30) == ("", said)
    assert run.returncode == code
    assert list(tmp_path.iterdir()) == []


def test_a_command_ends_without_a_search_for_garbage_in_what_it_has_imported():
    script = (
        "import atexit, gc, sys; import attention_sieve.__main__ as main; main.main = lambda: 0\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > len(gc.get_objects())))\n"
        "sys.exit(main._entry())"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=CODE.parent, check=True)
    assert run.stdout == "True\n"


def test_ctrl_c_after_the_work_changes_nothing():
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import attention_sieve.__main__ as main; main.main = lambda: print('done') or 0\n"
        "sys.exit(main._entry())"
    )
    command = [sys.executable, "-c", script]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CODE.parent) as run:
        run.stdout.readline()  # reaches a pipe when Python ends
        with suppress(subprocess.TimeoutExpired):
            run.wait(0.05)
        run.send_signal(signal.SIGINT)
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (0, "")


def test_a_table_of_latex_has_its_origin_in_comments_and_no_commands_of_a_text(tmp_path):
    table = pd.DataFrame({"head_1": ["L3 H7", r"\input{x} 50% & #1"], "share": [0.123456, np.nan]})
    write_table(tmp_path / "table.tex", table, {"texts": "a\n\\input{y}"})
    comment, *lines = (tmp_path / "table.tex").read_text("utf-8").splitlines()
    assert comment == r"% texts: a \input{y}"
    assert lines[0] == r"\begin{tabular}{lr}"
    assert r"head\_1 & share \\" in lines
    assert r"L3 H7 & 0.123 \\" in lines
    assert r"\textbackslash input\{x\} 50\% \& \#1 & -- \\" in lines


@pytest.mark.parametrize(
    "analysis", [each for each in ANALYSES if each.usage.command is not None], ids=lambda each: each.name
)
def test_no_command_of_an_analysis_replaces_the_texts_that_it_reads(analysis, tmp_path, capsys):
    texts = tmp_path / "texts.csv"
    texts.write_text("text\nThe cat sat.\nA dog ran.\n")
    pattern = ["--relation", "det"] if analysis.name == "word_links" else []
    given = [analysis.command, "--checkpoint", "bundled", "--texts", str(texts), *pattern]
    assert main([*given, "--output", str(texts)]) == 2
    assert "is also another file of this command" in capsys.readouterr().err
    for name in analysis.usage.second:
        options = ["--output", str(tmp_path / "a.csv"), f"--{name.replace('_', '-')}", str(texts)]
        assert main([*given, *options]) == 2
        assert "is also another file of this command" in capsys.readouterr().err
    assert texts.read_text() == "text\nThe cat sat.\nA dog ran.\n"
