"""Whether a model uses what a head carries: the concept erased from its output, against random erasures."""
