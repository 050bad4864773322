"""How the program reads each family of models that transformers has."""
