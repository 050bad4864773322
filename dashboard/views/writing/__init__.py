"""What a decoder writes after the text on screen: the button, what was written, and the steps through it."""
