"""The dashboard in use: waiting times, a whole class at once, minutes of mixed work, malicious checkpoints."""
