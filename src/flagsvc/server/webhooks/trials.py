"""Tests of settings that are not stored: one request, made now, and what the receiver answered (decision 0033)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

from flagsvc.core.errors import UpstreamError
from flagsvc.http.client.addresses import target_of
from flagsvc.http.client.answers import Answer, Limits
from flagsvc.http.client.transport import Transport
from flagsvc.http.client.trust import Trust
from flagsvc.server.webhooks.provider import MASK, origin_of, secrets_of
from flagsvc.server.webhooks.reach import Reach
from flagsvc.server.webhooks.sender import Message, describe_status, make_message
from flagsvc.server.webhooks.template import TemplateError

LIMITS = Limits(step_s=5.0, total_s=8.0, max_bytes=1024 * 1024)
"""The limits of a test, which a person waits for."""
MOST = 2
"""The most tests at the same time. Each test takes a thread that could answer reads."""
EXCERPT = 200
"""The most characters that are shown of an answer."""
BUSY = "others send tests just now: try again in a moment"


class Trial(NamedTuple):
    """How a test came out, in words, and the beginning of the answer; `delivered` for a status of success."""

    delivered: bool
    words: str
    excerpt: str = ""


class Trials:
    """Sends tests to the addresses that webhooks may reach, from the thread of a request."""

    def __init__(self, reach: Reach, limits: Limits = LIMITS) -> None:
        self._reach = reach
        self._limits = limits
        self._places = threading.BoundedSemaphore(MOST)

    def send(self, parameters: Mapping[str, str], event: Mapping[str, Any], seconds: int, *, shows: bool) -> Trial:
        """Send an event once, and return how it came out. `seconds` is the time (since the epoch).

        `shows` tells that the trial has the beginning of the answer, without any secret of the parameters.
        """
        if not self._places.acquire(blocking=False):
            return Trial(False, BUSY)
        try:
            message = make_message(parameters, event, str(uuid4()), seconds)
            answer = asyncio.run(self._exchange(message, whole=shows))
        except TemplateError as error:
            return Trial(False, str(error))
        except UpstreamError as error:
            return Trial(False, str(error).replace(f"`{origin_of(parameters['url'])}`", "the receiver"))
        finally:
            self._places.release()
        secrets = (*secrets_of(parameters), target_of(urlsplit(message.url)))
        return Trial(200 <= answer.status < 300, describe_status(answer.status), excerpt_of(answer, secrets))

    async def _exchange(self, message: Message, *, whole: bool) -> Answer:
        """Return the answer of the receiver, with its body if `whole`. Redirects are not followed. Raises UpstreamError."""
        line = Transport(origin_of(message.url), proxy=None, trust=Trust(), limits=self._limits, refusal=self._reach.refusal)
        try:
            return await line.send("POST", message.url, message.headers, message.body, whole=whole)
        finally:
            await line.aclose()


def excerpt_of(answer: Answer, secrets: Iterable[str]) -> str:
    """Return the first characters of an answer on one line, with the mask in place of each secret."""
    text = answer.body.decode("utf-8", "replace")
    for each in sorted(secrets, key=len, reverse=True):
        text = text.replace(each, MASK) if len(each) > 1 else text
    return " ".join("".join([each if each.isprintable() else " " for each in text]).split())[:EXCERPT]
