"""What surrounds Streamlit's page: who may ask for it, what its head brings, and the link to it."""
