"""Whether a model uses a concept encoded by a head: erasing it from the head's output, against random erasures."""
