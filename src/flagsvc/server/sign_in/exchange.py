"""One HTTP exchange with a provider, from a thread: small answers, short times, no redirects."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from flagsvc.core.errors import FlagsvcError, UpstreamError
from flagsvc.http.client.addresses import shown
from flagsvc.http.client.answers import Answer, Limits
from flagsvc.http.client.transport import Header, Transport
from flagsvc.http.client.trust import Trust
from flagsvc.settings.network import is_safe_origin

LIMITS = Limits(step_s=5.0, total_s=10.0, max_bytes=256 * 1024)
ACCEPT: Header = ("accept", b"application/json")
SIMPLE = re.compile(r"[a-z_]{1,40}")
"""The codes of errors that go to the log; anything else could be something else."""
FORM: Header = ("content-type", b"application/x-www-form-urlencoded")


class ProviderError(FlagsvcError):
    """The provider cannot be asked, or its answer is of no use. The message is for the log, and holds no secret."""


class BusyError(ProviderError):
    """Too many people sign in at this moment. The provider was not asked."""


class IdTokenError(ProviderError):
    """An ID token is refused. The message says why, and holds nothing of the token."""


def fetch(url: str, form: Mapping[str, str] | None = None, headers: Sequence[Header] = ()) -> dict[str, Any]:
    """Return the JSON object at a URL, or the answer to a form that is sent there. Raises ProviderError."""
    if not is_safe_origin(url):
        raise ProviderError("the provider names an address without TLS")
    try:
        answer = asyncio.run(_send(url, None if form is None else urlencode(form).encode(), headers))
    except UpstreamError as error:
        raise ProviderError(str(error)) from None
    if answer.status != 200:
        code = simple_error((read_object(answer.body) or {}).get("error")) if answer.status in (400, 401) else ""
        raise ProviderError(f"the provider answered with the status {answer.status}{code and f' ({code})'}")
    found = read_object(answer.body)
    if found is None:
        raise ProviderError("the provider answered with no JSON object")
    return found


def read_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object of an answer; None if it is none."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def simple_error(value: object) -> str:
    """Return the code of an error as a provider names it, for the log; empty for a value that is no such code."""
    return value if isinstance(value, str) and SIMPLE.fullmatch(value) else ""


async def _send(url: str, content: bytes | None, headers: Sequence[Header]) -> Answer:
    """Send one request over a connection of its own, so that none is ever sent twice."""
    transport = Transport(shown(url), proxy=None, trust=Trust(), limits=LIMITS)
    try:
        more = () if content is None else (FORM,)
        method = "GET" if content is None else "POST"
        return await transport.send(method, url, [ACCEPT, *more, *headers], content, reads=True)
    finally:
        await transport.aclose()
