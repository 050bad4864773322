"""Streamlit's page, with all that the first screen needs at the end of its head, and the shape of a page until one is
drawn; README.md says why of each piece."""

import logging
import re
from pathlib import Path
from typing import Final

from streamlit.file_util import get_static_dir

MADE_FOR: Final = "1.67"
"""Version of Streamlit that everything in this folder was made for and measured with."""
FIRST_WIDGETS: Final = ("BidiComponent", "ButtonGroup", "Checkbox", "Html", "Selectbox", "TextArea")
"""Widgets of the first page, by the names of their scripts in Streamlit."""
ROOM: Final = ("room.css", "phone.css", "lesson.css")
"""Style sheets that lay out the first screen and the panel of a lesson, in this order."""
SCRIPTS: Final = ("backend", "history", "enter", "choice", "present", "sections", "shown", "step", "visited")
"""Names of the scripts of the page around everything that Streamlit draws."""

_WEB: Final = Path(__file__).parent
_STATIC: Final = Path(get_static_dir())
_IMPORT: Final = re.compile(r'"(?<=from"|port")\./([^"/]+\.js)"')
"""The name after `from` or `import` in a script; the quote stands first, for a search that is several times faster."""


def first_page(static: Path = _STATIC) -> str:
    """The page; that of Streamlit itself, with a line in the log, if it has no head to which this can be added."""
    page = (static / "index.html").read_text("utf-8")
    if page.count("</head>") != 1:
        logging.getLogger(__name__).warning(
            "%s has not the one head that it had in Streamlit %s, so it is sent as it is, and moves while it is drawn.",
            static / "index.html",
            MADE_FOR,
        )
        return page
    room = "\n".join((_WEB / name).read_text("utf-8") for name in ROOM)
    links = [
        f'<link rel="modulepreload" crossorigin href="./static/js/{name}">'
        for name in scripts_of(FIRST_WIDGETS, static)
        if name not in page
    ]
    scripts = [f"<script>\n{(_WEB / f'{name}.js').read_text('utf-8')}</script>" for name in SCRIPTS]
    present = f'<style id="present" media="not all">\n{(_WEB / "present.css").read_text("utf-8")}</style>'
    added = (*links, f"<style>\n{room}</style>", present, *scripts, "</head>")
    skeleton = f"<body>\n{(_WEB / 'skeleton.html').read_text('utf-8')}"
    return page.replace("</head>", "\n".join(added)).replace("<body>", skeleton)


def scripts_of(widgets: tuple[str, ...], static: Path = _STATIC) -> list[str]:
    """File names of the widgets' scripts and of all scripts that these import; nothing of a widget that has none."""
    folder = static / "static" / "js"
    to_read = [path.name for widget in widgets for path in folder.glob(f"{widget}.*.js")]
    names: set[str] = set()
    while to_read:
        name = to_read.pop()
        if name not in names:
            names.add(name)
            to_read += _IMPORT.findall((folder / name).read_text("utf-8"))
    return sorted(names)
