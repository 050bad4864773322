"""Files of probing tasks: SentEval's format, labelled tables, and folders of them."""
