"""The contrast of two colours."""

import numpy as np


def contrast(one, other):
    """Of two colours such as #FFFFFF, from 1 to 21, as WCAG 2.2 defines it."""
    dark, light = sorted([_luminance(one), _luminance(other)])
    return (light + 0.05) / (dark + 0.05)


def _luminance(color):
    channels = np.array([int(color[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])
