"""The second riddle: heads without which a small decoder says another word."""
