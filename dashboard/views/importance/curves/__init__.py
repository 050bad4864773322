"""How many heads can go, and a checkpoint without them."""
