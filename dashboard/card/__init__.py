"""The card of a head: what it says, from the descriptions and the scores of a checkpoint, and its command."""
