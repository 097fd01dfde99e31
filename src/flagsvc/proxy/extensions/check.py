"""Checks of exported objects. Each returns a problem in words, or None."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def strategy(item: object) -> str | None:
    """Return why `item` is not a custom strategy, or None."""
    if isinstance(item, type):
        return f"is the class {item.__name__}, not an instance of it: write `{item.__name__}()`"
    name, is_enabled = getattr(item, "name", None), getattr(item, "is_enabled", None)
    if not isinstance(name, str) or not name:
        return f"is {type_with_article(item)} without a `name`: a strategy has a name and a method is_enabled(parameters, context)"
    if not callable(is_enabled):
        return f"(`{name}`) has no method is_enabled(parameters, context)"
    if inspect.iscoroutinefunction(is_enabled):
        return f"(`{name}`) has an async is_enabled: it must be a plain method, it runs inside the evaluation"
    return None if _takes(is_enabled, 2) else f"(`{name}`) has an is_enabled that does not take (parameters, context)"


def enricher(item: object) -> str | None:
    """Return why `item` is not a context enricher, or None."""
    if isinstance(item, type):
        return f"is the class {item.__name__}, not a function or an instance of it"
    if not callable(item):
        return f"is {type_with_article(item)}: an enricher is a function, plain or async, from context to context"
    return None if _takes(item, 1) else f"(`{function_name(item)}`) does not take exactly one argument, the context"


def declaration(item: object) -> str | None:
    """Return what is wrong with the attributes `pure` and `reads` of `item`, or None."""
    if not isinstance(getattr(item, "pure", False), bool):
        return "has a `pure` that is neither True nor False"
    reads = getattr(item, "reads", None)
    if reads is None or (isinstance(reads, set | frozenset) and all(isinstance(field, str) for field in reads)):
        return None
    return "has a `reads` that is not a set of context field names, for example {'userId', 'region'}"


def type_with_article(item: object) -> str:
    """Return the type of `item` with its article: `an int`."""
    kind = type(item).__name__
    return f"{'an' if kind[0].lower() in 'aeiou' else 'a'} {kind}"


def function_name(function: object) -> str:
    """Return the name of a function or callable object, for messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def _takes(function: Callable[..., object], arguments: int) -> bool:
    """Return whether `function` can be called with this many positional arguments, as far as its signature is known."""
    try:
        inspect.signature(function).bind(*[None] * arguments)
    except TypeError:
        return False
    except ValueError:  # a function written in C that does not tell its signature
        return True
    return True
