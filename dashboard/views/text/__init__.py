"""The text on screen: typed texts, stories, and computing its attention."""
