"""The pages, a folder for each."""
