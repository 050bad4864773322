"""Coreference: how well each head finds the antecedent of a mention."""
