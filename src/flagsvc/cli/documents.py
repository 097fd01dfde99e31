"""Reads a client-features document from a file, from standard input, or from a URL."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote

from flagsvc.core import files
from flagsvc.core.errors import ConfigurationError, UpstreamError
from flagsvc.core.files import LARGEST_DOCUMENT, read_bounded
from flagsvc.http.client.addresses import REDIRECTS
from flagsvc.settings.kinds import printable
from flagsvc.settings.network import hide_credentials

TIMEOUT_S = 10.0
URL_SCHEMES = ("http", "https")
ENDPOINTS = "a flag server's /api/client/features, a proxy's /proxy/client/features"
REFUSALS = {
    401: "the token was refused: give another one with --token or FLAGSVC_API_TOKEN",
    403: "the token was refused: give another one with --token or FLAGSVC_API_TOKEN",
    404: f"nothing is there; a client-features endpoint is {ENDPOINTS}",
    503: "it is not ready",
}


def read_document(where: str, *, token: str, header: str) -> object:
    """Return the decoded document at `where`: a path, `-`, or a URL that is asked with `token` in the header of that name.

    Raises ConfigurationError when there is no such file or it holds no JSON, UpstreamError when a URL gives no document.
    """
    scheme = where.partition("://")[0].lower()
    if scheme in URL_SCHEMES:
        content = fetch(where, token, header)
    elif where == "-":
        content = read_input()
    else:
        content = read_file(unquote(where[7:]) if scheme == "file" else where)
    return decode_document(content, describe_source(where))


def describe_source(where: str) -> str:
    """Return a source for messages: a URL without its credentials and query."""
    if where == "-":
        return "standard input"
    return hide_credentials(where) if where.partition("://")[0].lower() in URL_SCHEMES else where


def read_input() -> bytes:
    """Return the bytes of standard input. Raises ConfigurationError."""
    return _read("standard input", lambda: read_bounded(sys.stdin.buffer, LARGEST_DOCUMENT))


def read_file(path: str, most: int = LARGEST_DOCUMENT, *, pipes: bool = True) -> bytes:
    """Return the bytes of a file, at most `most`. Raises ConfigurationError. Without `pipes` a pipe is refused."""
    return _read(path, lambda: files.read_file(path, most, pipes=pipes))


def _read(name: str, read: Callable[[], bytes]) -> bytes:
    try:
        return read()
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise ConfigurationError([f"cannot read `{name}`: {reason.lower()}"]) from None


def read_text(path: str, most: int, *, pipes: bool = True) -> str:
    """Return the text of a file. Raises ConfigurationError if it cannot be read, or is not UTF-8."""
    try:
        return read_file(path, most, pipes=pipes).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigurationError([f"`{path}` is not UTF-8"]) from None


def fetch(url: str, token: str, header: str) -> bytes:
    """Return the body of one GET of `url`. Redirects are not followed, because the token is meant for this address."""
    from flagsvc.cli.client import Client, explain_failure, read_connection

    shown = hide_credentials(url)
    if not url.isprintable():
        raise ConfigurationError([f"`{shown}` is no URL: it holds a character that no URL has"])
    headers = [(header.lower(), token.encode("ascii"))] if token else []
    try:
        with Client(url, *read_connection(os.environ), TIMEOUT_S) as client:
            answer = client.send("GET", url, headers)
    except UpstreamError as error:
        raise UpstreamError(error.kind, explain_failure(error)) from None
    if answer.status == 200:
        return answer.body
    target = printable(answer.headers.get("location", "").partition("?")[0], 200)
    other = f"it redirects to `{target}`, ask there" if target and answer.status in REDIRECTS else "no document came"
    reason = REFUSALS.get(answer.status, other)
    raise UpstreamError("unexpected", f"`{shown}` answered with status {answer.status}: {reason}")


def decode_document(content: bytes, where: str) -> object:
    """Return the JSON value of `content`. Raises ConfigurationError."""
    if content.lstrip()[:1] == b"<":
        raise ConfigurationError([f"`{where}` is a web page, not a document; {ENDPOINTS} give one"])
    return load_json(content, where)


class NumberError(ValueError):
    """A number is not JSON; the message says why."""


def load_json(content: str | bytes, where: str, parse_number: Callable[[str], float] = float) -> Any:
    """Return a JSON value. `parse_number` reads numbers with a fraction or exponent, and NaN. Raises ConfigurationError."""
    try:
        return json.loads(content, parse_constant=parse_number, parse_float=parse_number)
    except json.JSONDecodeError as error:
        reason = f"{error.msg.lower()} at line {error.lineno}, column {error.colno}"
    except UnicodeDecodeError:
        reason = "not UTF-8"
    except NumberError as error:
        reason = str(error)
    except ValueError:
        reason = "a number has too many digits"
    except RecursionError:
        reason = "nested too deeply"
    raise ConfigurationError([f"`{where}` is not JSON: {reason}"])
