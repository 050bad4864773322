"""Malicious checkpoints, each loaded on trial: whether code was executed, and the maximum time and memory.

Goals: no code executed, no error message other than this program's, at most 30 seconds of processor time and 2 GB each.
`python -m benchmarks.serving.hostile_checkpoints 40 7` tries 40, drawn with seed 7.
"""

import json
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

N_CHECKPOINTS: Final = 300
GOAL_SECONDS: Final = 30
GOAL_BYTES: Final = 2e9
NUMBERS: Final = (
    0,
    -1,
    1,
    2,
    3,
    7,
    10**6,
    10**8,
    10**9,
    2**31,
    2**63,
    -(10**9),
    0.5,
    1e308,
    float("nan"),
    float("inf"),
)
VALUES: Final = (None, True, "", "x", "../../etc/passwd", "a" * 10**6, [], [1] * 10**6, {}, {"a": {"b": []}}, [[[[]]]])
STEPS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}] * 40},
    {"type": "Replace", "pattern": {"Regex": "(a|a)*b"}, "content": "x"},
    {"type": "Replace", "pattern": {"String": ""}, "content": "x"},
    {"type": "Replace", "pattern": {"Regex": ".*"}, "content": "y" * 9_000},
    {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
    {"type": "Prepend", "prepend": "z" * 9_000},
)
SPLITS: Final[tuple[dict[str, Any], ...]] = (
    {"type": "Split", "pattern": {"Regex": "(.*a){25}b"}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Removed", "invert": True},
    {"type": "Split", "pattern": {"Regex": "(?=a*)"}, "behavior": "Isolated", "invert": False},
    {"type": "CharDelimiterSplit", "delimiter": "a"},
)
TEMPLATES: Final = (
    "{{ 'a' * 10**9 }}",
    "{{ '%999999999d' % 1 }}",
    f"{{% set n = namespace(a='a') %}}{40 * '{% set n.a = n.a + n.a %}'}{{{{ n.a }}}}",
    f"{6 * '{% for a in range(9999) %}'}{6 * '{% endfor %}'}",
)

BROKEN: Final = "ended without a sentence"
ENDED: Final = {"crashed its process": BROKEN, "when it was loaded on trial": "stopped at a bound"}
"""Words of a sentence -> how the trial ended."""


class Executes:
    """Writes a file where it is unpickled."""

    def __init__(self, marker: Path) -> None:
        """Take the file."""
        self._marker = str(marker)

    def __reduce__(self) -> tuple[Callable, tuple]:
        return open, (self._marker, "w")


def main() -> None:
    sys.path.append(str(Path(__file__).parents[2] / "tests" / "material"))
    from small_checkpoints import save

    from attention_sieve.core.checkpoints.find import find_checkpoint
    from attention_sieve.core.checkpoints.trial_load import try_to_load
    from attention_sieve.core.errors import CheckpointError

    n = int(sys.argv[1]) if len(sys.argv) > 1 else N_CHECKPOINTS
    rng = random.Random(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    ended: Counter[str] = Counter()
    slowest = longest = 0.0
    with tempfile.TemporaryDirectory() as name:
        base, marker = Path(name), Path(name) / "executed"
        sound = [
            save(family, base / f"sound-{family}") for family in ("bert", "gpt2", "t5", "llama", "albert", "xlnet")
        ]
        for number in range(n):
            folder = shutil.copytree(rng.choice(sound), base / f"hostile-{number}")
            for _ in range(rng.choice((1, 1, 2, 3))):
                rng.choice(CHANGES)(folder, rng, marker)
            before, began = _processor_seconds(), time.monotonic()
            try:
                try_to_load(find_checkpoint(str(folder)))
                ended["loaded"] += 1
            except CheckpointError as error:
                how = next((how for words, how in ENDED.items() if words in str(error)), "refused")
                ended[how] += 1
                if how == BROKEN:
                    print(f"checkpoint {number}: {error}", flush=True)
            slowest = max(slowest, _processor_seconds() - before)
            longest = max(longest, time.monotonic() - began)
            if marker.exists():
                raise SystemExit(f"Checkpoint {number} executed its code.")
            shutil.rmtree(folder)
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    print(f"{n} checkpoints: {', '.join(f'{count} {how}' for how, count in sorted(ended.items()))}; 0 executed")
    print(f"at most {slowest:.1f} s of a processor (goal {GOAL_SECONDS}), {longest:.1f} s by the clock")
    print(f"at most {memory / 1e9:.2f} GB of memory (goal {GOAL_BYTES / 1e9:.1f})")


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _edit(path: Path, change: Callable[[Any], None]) -> None:
    if path.is_file():
        try:
            content = json.loads(path.read_bytes())
        except ValueError:
            return  # spoilt before
        change(content)
        path.write_text(json.dumps(content))


def change_settings(folder: Path, rng: random.Random, marker: Path) -> None:
    """Set an entry of the configuration to a value that no model has."""

    def change(content: dict[str, Any]) -> None:
        content[rng.choice(list(content))] = rng.choice((*NUMBERS, *NUMBERS, *VALUES))

    _edit(folder / rng.choice(("config.json", "config.json", "tokenizer_config.json")), change)


def name_code(folder: Path, rng: random.Random, marker: Path) -> None:
    """Request code beside the weights, and weights that run code when they are unpickled."""
    (folder / "code.py").write_text(f"open({str(marker)!r}, 'w')\nclass Config: pass\nclass Model: pass\n")
    named = {"AutoConfig": "code.Config", "AutoModel": "code.Model", "AutoTokenizer": ["code.Model", "code.Model"]}
    for file in ("config.json", "tokenizer_config.json"):
        _edit(folder / file, lambda content: content.update(auto_map=named, tokenizer_class="code.Model"))
    if rng.random() < 0.5:
        _edit(folder / "config.json", lambda content: content.update(model_type="hostile"))
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Executes(marker)))
    if rng.random() < 0.3:
        (folder / "model.safetensors").unlink(missing_ok=True)


def disguise_a_pickle(folder: Path, rng: random.Random, marker: Path) -> None:
    """Give a pickle file the name of safetensors weights."""
    (folder / "model.safetensors").write_bytes(pickle.dumps(Executes(marker)))


def spoil_bytes(folder: Path, rng: random.Random, marker: Path) -> None:
    """Change some bytes of a file, or cut it off."""
    path = rng.choice([path for path in sorted(folder.iterdir()) if path.is_file()])
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice((1, 3, 30))):
        if content:
            content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content[: rng.randrange(len(content) + 1)] if rng.random() < 0.3 else content)


def change_template(folder: Path, rng: random.Random, marker: Path) -> None:
    """Give a tokenizer a chat template without an end."""
    (folder / "chat_template.jinja").write_text(rng.choice(TEMPLATES))


def change_tokenizer(folder: Path, rng: random.Random, marker: Path) -> None:
    """Give a tokenizer steps that expand a text enormously, never end, or crash; or a huge number of tokens."""

    def change(content: dict[str, Any]) -> None:
        match rng.choice(("normalizer", "pre_tokenizer", "added", "ids", "words", "none")):
            case "normalizer":
                content["normalizer"] = rng.choice(STEPS)
            case "pre_tokenizer":
                content["pre_tokenizer"] = rng.choice(SPLITS)
            case "added":
                token = {"special": True, "single_word": False, "lstrip": True, "rstrip": True, "normalized": False}
                content["added_tokens"] = [
                    {"id": 10 ** rng.randrange(10) + place, "content": "ab"[place % 2] * (1 + place), **token}
                    for place in range(rng.choice((10, 1_000, 100_000 // 100)))
                ]
            case "ids":
                vocabulary = content["model"].get("vocab")
                if isinstance(vocabulary, dict):
                    content["model"]["vocab"] = {token: number * 10**6 for token, number in vocabulary.items()}
            case "words":
                content["model"]["vocab"] = {f"w{place}": place for place in range(10**6)}
            case "none":
                content[rng.choice(list(content))] = rng.choice(VALUES)

    _edit(folder / "tokenizer.json", change)


CHANGES: Final = (change_settings, change_settings, change_settings, change_tokenizer, change_tokenizer,
                  change_template, spoil_bytes, name_code, disguise_a_pickle)  # fmt: skip

if __name__ == "__main__":
    main()
