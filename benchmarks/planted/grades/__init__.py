"""Grades what the program, and other tools, say of planted models against what is known about these."""
