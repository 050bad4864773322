"""The dashboard as people meet it: waiting times, a class at once, minutes of mixed work, hostile checkpoints."""
