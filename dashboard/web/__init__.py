"""The server around the pages, and everything that bends Streamlit; see README.md."""

from typing import Final

MADE_FOR: Final = "1.67"
"""Version of Streamlit that everything here was made for and measured with."""
