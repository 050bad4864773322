"""The reader's browser tab keeps an uploaded table, packed, so that a reload brings it back."""

import gzip
import json
from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.errors import TextError
from attention_sieve.core.finetuning.data import unpacked
from attention_sieve.core.json_values import parse_json
from attention_sieve.dashboard import controls, link
from attention_sieve.dashboard.components.kept_text import keep_text, mark_of
from attention_sieve.dashboard.views.finetune import wording

TABLE: Final = "labelled table"
"""Key of the table as JSON, in the session and in the tab."""
MOST_KEPT: Final = 4_000_000
"""Maximum number of characters of a packed table: a tab keeps about 5 million in all (sessionStorage)."""
_PACKED: Final = f"{TABLE}, packed"
"""Key of the id and the packed content of the last upload."""


@dataclass(frozen=True)
class KeptTable:
    """A table in the reader's browser tab."""

    name: str
    """Name of the file."""
    packed: str | None
    """Its bytes, gzipped, in base64; None if the tab has no room for them."""
    columns: tuple[str | None, str | None, str | None]
    """The columns that were picked: the text, the second segment, the label; None where none was."""

    def content(self) -> bytes:
        """The bytes of the file.

        Raises: TextError if they are damaged.
        """
        try:
            content = b64decode(self.packed or "", validate=True)
        except ValueError:
            raise TextError(wording.upload_again(self.name)) from None
        return unpacked(content)


def kept_table() -> KeptTable | None:
    """The table that this session, or before a reload this tab, has kept; None without one.

    While the tab has not answered, nothing else is drawn.
    """
    controls.fetch_from_tab(TABLE, wording.TABLE_NOT_IN_THIS_TAB)
    try:
        values = parse_json(st.session_state.get(TABLE) or "null")
        text, second, label = values["columns"]
        table = KeptTable(values["name"], values["packed"], (text, second, label))
    except (ValueError, TypeError, KeyError):
        return None
    texts = (table.name, table.packed or "", *(column or "" for column in table.columns))
    return table if all(isinstance(text, str) for text in texts) else None


def keep_table(
    name: str, file_id: str, content: Callable[[], bytes], columns: tuple[str | None, str | None, str | None]
) -> bool:
    """Keep a table in the session and in the reader's browser tab.

    Args:
        file_id: differs for each upload.
        columns: as of `KeptTable`.

    Returns: whether the tab has room for it; otherwise it keeps the name alone.
    """
    if st.session_state.get(_PACKED, ("", None))[0] != file_id:
        packed = b64encode(gzip.compress(content(), mtime=0)).decode("ascii")
        st.session_state[_PACKED] = file_id, packed if len(packed) <= MOST_KEPT else None
    packed = st.session_state[_PACKED][1]
    text = json.dumps(asdict(KeptTable(name, packed, columns)))
    st.session_state[TABLE] = text
    link.put([TABLE + controls.IN_TAB], {TABLE + controls.IN_TAB: mark_of(text)})
    if not keep_text(TABLE, text) and packed is not None:
        st.session_state[_PACKED] = file_id, None
        st.rerun()
    return packed is not None


def forget_table() -> None:
    """Forget the table, also in the tab once the page is drawn."""
    st.session_state[TABLE] = ""
    link.put([TABLE + controls.IN_TAB], {})


def empty_tab() -> None:
    """Remove a forgotten table from the tab."""
    if st.session_state.get(TABLE) == "":
        keep_text(TABLE, "")
