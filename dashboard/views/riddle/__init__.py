"""The riddle that a new visitor meets before the working page."""
