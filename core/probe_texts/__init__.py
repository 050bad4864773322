"""Made texts that show what heads of decoders do: repeats, needles in filler, names and ordinals."""
