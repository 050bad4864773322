"""The web server around Streamlit: access control, static files, and the link to the page."""
