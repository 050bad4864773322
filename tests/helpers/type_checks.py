"""What the checker of types spends its time on: shapes are followed only where a function has arrays, each argument is
checked once, of the functions that are made within another at each of its calls the first is checked, and what comes
with the installation is not compiled again."""

import inspect
from collections.abc import Callable
from functools import partial, wraps
from importlib.machinery import SourceFileLoader
from types import CodeType
from typing import ForwardRef, get_args
from unittest.mock import patch

import jaxtyping
import jaxtyping._import_hook as import_hook

_CHECKED_ONCE: set[CodeType] = set()
_AXES_OF_A_CALL = jaxtyping.jaxtyped("context")


def check_shapes_of_arrays_only() -> None:
    """Give functions without an array to the type checker alone.

    The import hook of jaxtyping keeps the axes of arrays for every call of every function, whether it has an array or
    not: a quarter of the time of these tests.
    """
    jaxtyping.jaxtyped = partial(_checked, keep_axes=jaxtyping.jaxtyped)


def compile_only_what_is_checked() -> None:
    """Let the import hook of jaxtyping read other packages as they were compiled when they were installed.

    While it imports a module, it also gives names of its own to the compiled files of whatever that module imports:
    after an installation each of the first processes compiles torch, transformers and 3,000 files in all once more.
    """
    loader = import_hook._JaxtypingLoader
    loader.get_code = _code_of_a_checked_module
    loader.exec_module = SourceFileLoader.exec_module


def _code_of_a_checked_module(loader: import_hook._JaxtypingLoader, name: str) -> CodeType | None:
    names = partial(import_hook._optimized_cache_from_source, loader._typechecker.get_hash())
    with patch("importlib._bootstrap_external.cache_from_source", names):
        return SourceFileLoader.get_code(loader, name)


def _checked(*function: Callable, typechecker: Callable, keep_axes: Callable) -> Callable:
    if not function:
        return partial(_checked, typechecker=typechecker, keep_axes=keep_axes)
    if inspect.isfunction(function[0]) and "<locals>" in function[0].__qualname__:
        # A checker takes a millisecond to make.
        if function[0].__code__ in _CHECKED_ONCE:
            return function[0]
        _CHECKED_ONCE.add(function[0].__code__)
    if not inspect.isfunction(function[0]):
        return keep_axes(*function, typechecker=typechecker)
    annotations = function[0].__annotations__.values()
    if not any(map(_may_name_axes, annotations)):
        return typechecker(function[0])
    if inspect.isgeneratorfunction(function[0]) or any(map(_is_unresolved, annotations)):
        return keep_axes(*function, typechecker=typechecker)
    return _with_axes(typechecker(function[0]))


def _with_axes(checked: Callable) -> Callable:
    """A checked function whose axes have one size each for the length of a call, as `jaxtyping.jaxtyped` has it.

    That checks the arguments a second time with what is returned, and keeps them for a message: a tenth of the time of
    the tests of core.
    """

    @wraps(checked)
    def called(*arguments: object, **named: object) -> object:
        with _AXES_OF_A_CALL:
            return checked(*arguments, **named)

    return called


def _is_unresolved(annotation: object) -> bool:
    """Whether it is or holds a name in quotes."""
    return isinstance(annotation, str | ForwardRef) or any(map(_is_unresolved, get_args(annotation)))


def _may_name_axes(annotation: object) -> bool:
    """Whether it is or holds an array; a name that is not resolved yet may be one."""
    if isinstance(annotation, str) or (inspect.isclass(annotation) and issubclass(annotation, jaxtyping.AbstractArray)):
        return True
    return any(map(_may_name_axes, get_args(annotation)))
