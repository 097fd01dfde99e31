"""Removes secret values from errors.

A stack frame of a request contains its headers, and so the token. A tool that reports errors with local variables would show it.
The lines of the traceback stay, because they say where the error was.
"""

from __future__ import annotations

import functools
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Result = TypeVar("Result")


def sealed(
    function: Callable[Given, Coroutine[Any, Any, Result]],
) -> Callable[Given, Coroutine[Any, Any, Result]]:
    """Return a coroutine function whose errors have no arguments and no local variables of the frames they passed.

    The cause of an error is removed, too: other libraries' messages may repeat what was sent, and ours are complete.
    """

    @functools.wraps(function)
    async def call(*given: Given.args, **named: Given.kwargs) -> Result:
        try:
            return await function(*given, **named)
        except BaseException as error:
            del given, named
            traceback.clear_frames(error.__traceback__)
            error.__cause__ = error.__context__ = None
            raise

    return call
