"""One HTML file with the heads of a checkpoint, or of two: it opens without a network, and can be checked.

What is asked (`asked.py`) -> what is found (`content.py`) -> what is drawn (`data.py`) -> the file (`file.py`), which
`check.py` computes again.
"""
