"""Checks the types of calls while tests run; jaxtyping hands each function of core to it."""

from functools import cache

from beartype import beartype


def at_first_call(function):
    """What checks a call by beartype, which takes a millisecond to make a check: none that no test needs is made.

    A function within another is not checked: it, and thus its check, is made anew at each call of the outer one.
    """
    if "<locals>" in function.__qualname__:
        return function
    checked = cache(lambda: beartype(function))
    return lambda *given, **named: checked()(*given, **named)
