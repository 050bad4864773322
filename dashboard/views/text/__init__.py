"""The text on screen: typing it, the stories about it, waiting for its attention."""
