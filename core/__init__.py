"""The analysis library of Attention Sieve: texts in, head roles out. It is independent of the dashboard and the
cache."""

import os

# Waiting OpenMP threads that spin slow a busy machine many times over; torch reads this once, when it is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
