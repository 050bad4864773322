"""beartype's check of a function, made when it is first called: a worker calls a third of what it imports."""

from functools import wraps

from beartype import beartype


def checked(function):
    """The function, checked by beartype."""
    known = []

    @wraps(function)
    def check(*arguments, **more):
        if not known:
            known.append(beartype(function))
        return known[0](*arguments, **more)

    return check
