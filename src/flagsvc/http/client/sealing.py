"""Errors leave without the values that were in the frames they came through.

A frame of a request holds its headers, and so the token; what keeps the variables of a traceback, as reports of errors do,
would show it. The lines of the traceback stay: they say where it was.
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
    """Have whatever a coroutine function raises know neither what it was given nor any other value on the way to the fault.

    What it was raised from goes, too: the texts of foreign errors repeat what was sent, and ours say all there is to say.
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
