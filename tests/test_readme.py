"""The front door: what any README shows is there, runs, and is what was measured."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from attention_sieve.__main__ import _parser, main
from benchmarks.findings.__main__ import BLOCK, PRINTED

ROOT = Path(__file__).parents[1]
ROOMS = ("benchmarks", "cache", "core", "dashboard", "tests")
README = ROOT / "README.md"
READMES = (README, *sorted(path for room in ROOMS for path in (ROOT / room).rglob("README.md")))
DOCUMENTS = (*READMES, *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md") if (ROOT / name).is_file()))
FINDINGS = ROOT / "benchmarks" / "findings"
MOST_BYTES = 8192
PARSER = _parser()
SOURCES = "\n".join(
    path.read_text("utf-8")
    for path in (ROOT / "Makefile", *(path for room in ROOMS for path in (ROOT / room).rglob("*.py")))
    if path != Path(__file__)
)

FENCED = re.compile(r"^```(?P<language>\w*)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^()\s]+)\)")
NUMBER = re.compile(r"(?<![\w.-])\d[\d.,]*")
YEAR = re.compile(r"\((19|20)\d\d\)")
STAMP = re.compile(r"\bcommit\s[0-9a-f]{7,}\b")


def name_of(document: Path) -> str:
    return str(document.relative_to(ROOT))


def read(document: Path) -> str:
    return document.read_text("utf-8")


def commands(document: Path) -> Iterator[list[str]]:
    """Every command of a document, in fences without a language and in the text, as a list of words."""
    text = read(document)
    lines = [line for fence in FENCED.finditer(text) if not fence["language"] for line in fence["code"].splitlines()]
    lines += [code for code in INLINE.findall(FENCED.sub("", text)) if re.match(r"(\S*python -m|make) ", code)]
    for line in lines:
        for part in line.split("&&"):
            if words := shlex.split(part, comments=True):
                program, *arguments = words[1:] if re.fullmatch(r"[A-Z_]+=\S*", words[0]) else words
                yield [Path(program).name, *arguments]


def python_commands(document: Path, module: str) -> list[list[str]]:
    """The arguments of every command of a document that runs a module."""
    named = [words[2:] for words in commands(document) if words[:2] == ["python", "-m"]]
    return [arguments for name, *arguments in named if name == module]


def test_the_readme_has_at_most_eight_kilobytes():
    assert README.stat().st_size <= MOST_BYTES


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_command_is_one_that_there_is(document):
    for words in commands(document):
        match words:
            case ["python", "-m", "attention_sieve", *arguments]:
                if "--help" not in arguments:
                    PARSER.parse_args(arguments)
            case ["python", "-m", "benchmarks.findings", *scripts]:
                assert all((FINDINGS / f"{script}.py").is_file() for script in scripts), words
            case ["python", "-m", "pytest", *paths]:
                assert all((ROOT / path).exists() for path in paths if not path.startswith("-")), words
            case ["python", "-m", module, *_]:
                place = ROOT / module.replace(".", "/")
                assert place.with_suffix(".py").is_file() or (place / "__main__.py").is_file(), words
            case ["make", *arguments]:
                assert [name for name in arguments if not is_in_makefile(name)] == []
            case ["docker", *_]:
                assert (ROOT / "Dockerfile").is_file()
            case _:
                pytest.fail(f"No test knows whether this runs: {' '.join(words)}")


def test_every_command_of_the_program_is_shown():
    (names,) = (action.choices for action in PARSER._actions if action.choices)
    shown = {arguments[0] for readme in READMES for arguments in python_commands(readme, "attention_sieve")}
    assert set(names) - shown == set()


def is_in_makefile(argument: str) -> bool:
    """Whether an argument of make is a target, or gives a value to a variable that is used."""
    makefile = read(ROOT / "Makefile")
    if "=" in argument:
        return f"$({argument.partition('=')[0]})" in makefile
    return re.search(rf"^{re.escape(argument)}:", makefile, re.MULTILINE) is not None


def test_the_readmes_commands_for_own_texts_and_for_a_corpus_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentences = "The old dog slept.\nShe quietly closed her small shop.\nA boy threw the red ball.\n"
    Path("sentences.txt").write_text(sentences, "utf-8")
    Path("folder").mkdir()
    Path("folder/texts.txt").write_text(sentences, "utf-8")
    for arguments in python_commands(README, "attention_sieve"):
        if "--help" in arguments:
            with pytest.raises(SystemExit, match="0"):
                main(arguments)
        else:
            assert main(arguments) == 0
            assert Path(arguments[arguments.index("--output") + 1]).exists()


def test_the_notebook_prints_a_head_that_looks_one_token_back(capsys):
    (code,) = [fence["code"] for fence in FENCED.finditer(read(README)) if fence["language"] == "python"]
    exec(code, {})
    assert re.fullmatch(r"L\d H\d+ gives \d+\.\d% of its attention to the previous token\.\n", capsys.readouterr().out)


def test_the_commands_of_the_store_run_as_they_stand(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path))
    shown = python_commands(ROOT / "cache" / "README.md", "attention_sieve")
    assert {tuple(arguments[:2]) for arguments in shown} == {
        ("store", action) for action in ("stats", "verify", "clear")
    }
    assert [main(arguments) for arguments in shown] == [0] * len(shown)


@pytest.mark.parametrize("document", DOCUMENTS, ids=name_of)
def test_every_link_and_picture_leads_to_a_file_and_to_a_heading_of_it(document):
    broken = [
        link for link in LINK.findall(read(document)) if not link.startswith("http") and not leads_on(document, link)
    ]
    assert broken == []


def leads_on(document: Path, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (document.parent / path).resolve() if path else document
    return target.exists() and (not anchor or anchor in anchors(target))


def anchors(document: Path) -> list[str]:
    """The names that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.+)$", FENCED.sub("", read(document)), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_readme_can_be_reached_from_the_first_one():
    reached, ahead = {README}, [README]
    while ahead:
        document = ahead.pop()
        links = [(document.parent / link.partition("#")[0]).resolve() for link in LINK.findall(read(document))]
        found = {link for link in links if link.suffix == ".md" and link.is_file()} - reached
        reached |= found
        ahead += found
    assert [document for document in READMES if document not in reached] == []


def test_every_picture_that_is_taken_is_shown():
    shown = {Path(link).name for document in READMES for link in LINK.findall(read(document))}
    assert {path.name for path in (ROOT / "dashboard" / "pictures").iterdir()} - shown == set()


@pytest.mark.parametrize("document", READMES, ids=name_of)
def test_every_file_folder_option_and_name_in_backticks_is_there(document):
    spans = INLINE.findall(FENCED.sub("", read(document)))
    options = [option for span in spans for option in re.findall(r"(?<!\S)--[a-z-]+", span)]
    assert [option for option in options if not is_option(option)] == []
    names = [span for span in spans if " " not in span]
    paths = [
        name for name in names if re.fullmatch(r"[\w./-]+\.(py|md|css|js|conf|bib|toml|lock)|[\w.-]+/[\w./-]*", name)
    ]
    assert [path for path in paths if not is_path(document, path)] == []
    identifiers = [name for name in names if re.fullmatch(r"_?[a-z]+(_[a-z]+)+|[A-Z]{3,}|[A-Z]+(_[A-Z]+)+", name)]
    assert [name for name in identifiers if not re.search(rf"\b{name}\b", SOURCES)] == []


def is_option(option: str) -> bool:
    """Whether a command names the option, or a field of settings makes it one."""
    field = option.removeprefix("--").removeprefix("no-").replace("-", "_")
    return option == "--help" or f'"{option}"' in SOURCES or f" {field}: Annotated[" in SOURCES


def is_path(document: Path, name: str) -> bool:
    """Whether a file or folder is there, from the root or from the document; a bare name also anywhere below it."""
    here = (ROOT / name).exists() or (document.parent / name).exists()
    return here or ("/" not in name and next(document.parent.rglob(name), None) is not None)


def test_who_teaches_a_class_needs_no_test():
    manual = read(ROOT / "dashboard" / "README.md")
    for_a_class = manual.partition("## For a class")[2].partition("## For a study")[0]
    assert for_a_class
    assert not re.search(r"t-test|p-value|\btau\b|significan", for_a_class, re.IGNORECASE)


def test_the_pages_name_readmes_that_there_are():
    pages = (ROOT / "dashboard").rglob("*")
    texts = [path.read_text("utf-8") for path in pages if path.suffix in (".py", ".toml")]
    named = {name for text in texts for name in re.findall(r"`([\w/]*README\.md)`", text)}
    assert len(named) > 2
    assert [name for name in sorted(named) if not (ROOT / name).is_file()] == []


SCRIPTS = sorted(path.stem for path in FINDINGS.glob("[a-z]*.py"))


def test_the_findings_show_every_script_with_what_it_printed():
    shown = {block["script"]: block["text"] for block in BLOCK.finditer(read(FINDINGS / "README.md"))}
    assert sorted(shown) == SCRIPTS
    assert shown == {script: read(PRINTED / f"{script}.md") for script in SCRIPTS}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_printed_is_kept_with_its_command_and_commit(script):
    last = read(PRINTED / f"{script}.md").rstrip().rpartition("\n\n")[2]
    assert f"`python -m benchmarks.findings.{script}`" in last
    assert STAMP.search(last)


def test_around_what_was_printed_the_findings_have_no_number():
    prose = FENCED.sub("", BLOCK.sub("", read(FINDINGS / "README.md")))
    assert NUMBER.findall(YEAR.sub("", INLINE.sub("", LINK.sub("", prose)))) == []
