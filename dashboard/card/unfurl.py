"""What other sites show of a link to a head: Open Graph tags in the page, and the card of the head as their image.

Only a public server does this: nobody else can follow a link to one's own machine. Whoever asks for the image is
unknown, so little is done for it: a card of the bundled checkpoint by the usual settings takes what is kept of the
sample texts and one pass over a short text; one is drawn at a time, and few in a minute.
"""

import re
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from threading import Lock
from typing import Final
from urllib.parse import urlencode

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.checkpoints.find import BUNDLED, BUNDLED_MODEL
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.dashboard.offers import checkpoint_names

IMAGE: Final = "card.png"
"""Address of the image."""
ASKS: Final = frozenset({"text", "head", "checkpoint"})
"""Parameters of a link that a card shows; a link with others shows something else."""
LONGEST_TEXT: Final = 300
"""Characters of a text that is passed for whoever asks."""
MOST_IN_A_MINUTE: Final = 20
"""Images that are made; one that is kept is sent whenever it is asked for."""
_HEADS: Final = re.compile(r"(?:\d{1,3}-\d{1,3},){0,20}(\d{1,3})-(\d{1,3})", re.ASCII)
_lock: Final = Lock()
_made: Final = deque[float](maxlen=MOST_IN_A_MINUTE)
"""When the last images were begun."""
_names: Final = dict[Head, str]()
"""Names of the heads in words, known from the first image on: the page does not wait for them."""


@dataclass(frozen=True)
class Linked:
    """What a link shows, as far as a card can show it."""

    text: Text
    head: Head

    @property
    def title(self) -> str:
        """The head, with its name in words where that is known."""
        name = f"{_names[self.head]}: " if self.head in _names else ""
        return f"{name}{head_name(*self.head)} of {BUNDLED_MODEL}"


def linked(query: QueryParams) -> Linked | None:
    """The text and the head of a link; None for one that has none, or something else than a card shows."""
    asked = {name: query.getlist(name) for name in query}
    if not {"text", "head"} <= set(asked) <= ASKS or any(len(values) > 1 for values in asked.values()):
        return None
    offered = checkpoint_names()
    if query.get("checkpoint", offered[0]) != BUNDLED or BUNDLED not in offered:
        return None
    match = _HEADS.fullmatch(query["head"])
    if match is None or len(query["text"]) > LONGEST_TEXT:
        return None
    try:
        texts = read_typed(query["text"])
    except AnalysisError:
        return None  # the page says what is wrong with it
    if len(texts) != 1 or texts[0].given is not None:
        return None
    return Linked(texts[0], (int(match[1]), int(match[2])))


def with_tags(page: str, request: Request) -> str:
    """The page with tags that say what its link shows; unchanged where that is no head in a text."""
    shown = linked(request.query_params)
    if shown is None:
        return page
    image = f"{request.base_url}{IMAGE}?{urlencode(_asked(request.query_params))}"
    tags = {
        "og:type": "website",
        "og:site_name": "Attention Sieve",
        "og:title": shown.title,
        "og:description": f"What this attention head does in “{' / '.join(shown.text.segments)}”",
        "og:image": image,
        "og:image:type": "image/png",
        "og:image:width": "1200",
        "og:image:height": "630",
        "twitter:card": "summary_large_image",
    }
    written = "\n".join(f'<meta property="{name}" content="{escape(value)}">' for name, value in tags.items())
    return page.replace("</head>", f"{written}\n</head>", 1)


def _asked(query: Mapping[str, str]) -> dict[str, str]:
    return {name: query[name] for name in sorted(ASKS & set(query))}


async def card_image(request: Request) -> Response:
    """The card of a head in a text as PNG; 404 where there is none, 503 while others are made."""
    shown = linked(request.query_params)
    if shown is None:
        return PlainTextResponse("There is no such card.\n", 404)
    return await run_in_threadpool(_image, shown)


def _image(shown: Linked) -> Response:
    from attention_sieve.cache.answers import Engine  # this and what follows would delay the start of the server
    from attention_sieve.core.checkpoints.find import find_checkpoint
    from attention_sieve.dashboard.card.of_samples import card_of_samples, described_samples
    from attention_sieve.dashboard.controls import inference
    from attention_sieve.dashboard.figures.card import card_png

    shared = inference()
    kept: bytes | None = shared.memory.get(IMAGE, shown)
    if kept is not None:
        return _sent(kept)
    if not _lock.acquire(blocking=False):
        return _busy()
    try:
        engine = Engine(find_checkpoint(BUNDLED))
        engine.files.check_heads("self", [shown.head])
        now = time.monotonic()
        if len(_made) == MOST_IN_A_MINUTE and now - _made[0] < 60:
            return _busy()
        _made.append(now)
        described = described_samples(shared, engine)
        if described is None:
            return PlainTextResponse("The sample texts are not scored on this server.\n", 404)
        _names.update({head: described.name(head) for head in described.heads})
        card = card_of_samples(shared, engine, described, (shown.text, shown.head))
        return _sent(shared.memory.put(IMAGE, shown, card_png(card)))
    except AnalysisError:
        return PlainTextResponse("There is no such card.\n", 404)
    finally:
        _lock.release()


def _sent(png: bytes) -> Response:
    return Response(png, headers={"Cache-Control": "public, max-age=3600"}, media_type="image/png")


def _busy() -> Response:
    return PlainTextResponse("Other cards are being drawn. Try again in a minute.\n", 503, {"Retry-After": "60"})
