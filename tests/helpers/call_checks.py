"""Checks the types of calls while tests run, at the least cost: up to half of the time of core's tests otherwise.

jaxtyping's hook finds `jaxtyping.jaxtyped` by name, and `jaxtyping.config` can only turn checks off for all. Left as it
is, with `at_first_call` as type checker, the tests of attention, passes and similarity take 23 % more time of a
processor (57 s for 46 s), those of statistics and roles as much as here. beartype's own hook begins no call of
jaxtyping, so that axes of one name may differ in size between arguments.
"""

import re
from dataclasses import is_dataclass
from functools import cache, partial, wraps

import jaxtyping
from beartype import beartype

AXES = re.compile(r"\b(Bool|Float|Int|Num|Shaped|UInt)\d*\[")
"""Begins the annotation of an array, also within another one."""
QUOTED = re.compile(r"""ForwardRef|[\[ ]['"]""")
"""Begins a name in quotes within an annotation, which may be an array's or one that only the type checker knows."""
RESULT = "ret0"
"""jaxtyping's name of the argument that holds a result; were it another, arguments would be checked twice."""
_jaxtyped = jaxtyping.jaxtyped


def follow_axes_of_arrays_only():
    """Give what has no array to beartype alone: jaxtyping keeps the axes of each call, which is most of its cost."""
    jaxtyping.jaxtyped = _checked


def at_first_call(function):
    """What checks a call by beartype, which takes a millisecond to make a check: none that no test needs is made.

    Of a function with arrays, jaxtyping asks for two: the second has the result as an argument, and need not check the
    other arguments again.
    """
    if RESULT in function.__annotations__:
        function.__annotations__ = {"return": function.__annotations__["return"]}
    checked = cache(lambda: beartype(function))

    @wraps(function)
    def called(*given, **named):
        if jaxtyping.config.jaxtyping_disable:
            return function(*given, **named)
        return checked()(*given, **named)

    return called


def _checked(function=None, *, typechecker):
    """As `jaxtyping.jaxtyped`, but that a function within another, made anew at each call of it, is not checked."""
    if function is None:
        return partial(_checked, typechecker=typechecker)
    if is_dataclass(function) and "__init__" in vars(function) and _has_no_axes(function.__init__):
        function.__init__ = typechecker(function.__init__)
        return function
    if isinstance(function, type | property | classmethod | staticmethod):
        return _jaxtyped(function, typechecker=typechecker)
    if "<locals>" in function.__qualname__:
        return function
    return typechecker(function) if _has_no_axes(function) else _jaxtyped(function, typechecker=typechecker)


def _has_no_axes(function):
    annotations = function.__annotations__.values()
    said = " ".join(map(repr, annotations)).replace("<class '", "<class ")
    return not (AXES.search(said) or QUOTED.search(f" {said}"))
