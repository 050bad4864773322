"""How much code a reader of the program has to go through."""
