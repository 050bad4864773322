"""Custom Streamlit components: a Python function with its HTML, CSS and JavaScript."""
