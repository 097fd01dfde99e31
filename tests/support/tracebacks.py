"""The content of an error report: the local variables of every frame of its traceback, and of its causes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress

from support.wiretap import found

DEEP = 6
"""How far what is in something is looked into."""


def shown(error: BaseException) -> dict[str, str]:
    """Return where → text: the texts of an exception and of the variables on its way, without those of our tests."""
    return {place: text for each in chain(error) for place, text in told(each)}


def leaks(error: BaseException, secrets: list[str]) -> dict[str, str]:
    """Return the parts of an error with one of the secrets, in any form, by place."""
    return {place: text[:300] for place, text in shown(error).items() if found(secrets, text.encode())}


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """Give an exception, and all that it was raised from or while handling, each once."""
    waiting, seen = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        waiting += [each.__cause__, each.__context__]
        waiting += each.exceptions if isinstance(each, BaseExceptionGroup) else ()


def told(error: BaseException) -> Iterator[tuple[str, str]]:
    """Yield the text of one exception, and the variables in the frames of its traceback."""
    kind = type(error).__name__
    yield kind, "\n".join([str(error), *values(error.args, DEEP), *values(vars(error), DEEP)])
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if "/tests/" not in code.co_filename:
            for name, value in trace.tb_frame.f_locals.items():
                yield f"{kind}: {code.co_filename}:{code.co_name}: {name}", "\n".join(values(value, DEEP))
        trace = trace.tb_next


def values(value: object, deep: int) -> Iterator[str]:
    """Give the representation of a value, and of the values in it: reporters write both."""
    with suppress(Exception):  # what is half built has none
        yield repr(value)
    inside = [*value, *value.values()] if isinstance(value, Mapping) else value
    if isinstance(inside, list | tuple | set | frozenset) and deep:
        for each in inside:
            yield from values(each, deep - 1)
