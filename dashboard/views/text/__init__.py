"""The text on screen: typing it, waiting for its attention, drawing it."""
