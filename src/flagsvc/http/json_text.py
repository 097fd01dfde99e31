"""Parses JSON for both programs, and turns each kind of fault into an error. Compiled."""

from __future__ import annotations

import json
from typing import NoReturn

import msgspec
from mypy_extensions import i64

from flagsvc.http.media import UTF8, to_text
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import DEPTH


def parse(text: bytes, codec: str, depth: int = 0, *, as_sent: bool = False) -> object:
    """Return the JSON value of a text. Raises HttpError (400, with the parser's position).

    `depth` is the deepest nesting of lists and objects; 0 for the limit of the parser. Half a surrogate pair becomes U+FFFD, or
    stays with `as_sent`.
    """
    value = decoded(text, codec, depth, as_sent)
    if depth and deeper(value, depth):
        raise too_deep(depth)
    return value


def decoded(text: bytes, codec: str, depth: int, as_sent: bool) -> object:
    """Return the JSON value of a text. Raises HttpError (400)."""
    try:
        return msgspec.json.decode(text if codec == UTF8 else to_text(text, codec))
    except RecursionError:
        raise too_deep(depth) from None
    except ValueError:
        return read_or_refuse(to_text(text, codec), depth, as_sent)


def deeper(value: object, levels: i64) -> bool:
    """Return whether lists and objects are nested deeper than `levels` levels."""
    if isinstance(value, dict):
        if levels == 0:
            return True
        for each in value.values():
            if deeper(each, levels - 1):
                return True
    elif isinstance(value, list):
        if levels == 0:
            return True
        for item in value:
            if deeper(item, levels - 1):
                return True
    return False


def read_or_refuse(text: str, depth: int, as_sent: bool) -> object:
    """Return the value of a text that the fast parser refuses, if it is JSON all the same: half a surrogate pair, `1e400`.

    Raises HttpError (400) with the position of the error if it is not JSON.
    """
    if not text.strip(" \t\r\n"):
        raise HttpError(400, "the body is not JSON: it is empty", [])
    try:
        value: object = json.loads(text, parse_constant=refuse_constant)
        return value if as_sent else whole(value)
    except RecursionError:
        raise too_deep(depth) from None
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        where = f"line {error.lineno} column {error.colno} (position {error.pos})"
        raise HttpError(400, f"the body is not JSON: {reason} at {where}", []) from None
    except ValueError:
        raise HttpError(400, "the body is not JSON: a number has too many digits", []) from None


def too_deep(depth: int) -> HttpError:
    """Return the 400 for a body that is nested deeper than `depth` levels; 0 stands for the parser's limit."""
    problems = [("/body", f"must NOT be nested in more than {depth} levels")] if depth else []
    return HttpError(400, "the body is nested too deeply", problems, DEPTH)


def refuse_constant(name: str) -> NoReturn:
    """Raise for `NaN` and `Infinity`, which the parser of the standard library accepts."""
    raise HttpError(400, f"the body is not JSON: `{name}` is no value", [])


def whole(value: object) -> object:
    """Return a JSON value with U+FFFD in place of every half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [whole(each) for each in value]
    if isinstance(value, dict):
        return {whole(key): whole(each) for key, each in value.items()}
    return value
