"""The server around the pages, and everything that bends Streamlit; see README.md."""
