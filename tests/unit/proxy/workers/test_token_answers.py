"""The parent's answers to the questions of workers about tokens."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from flagsvc.proxy.tokens import Admission, TokenScope, UnavailableError
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.pool import LEAST_RETRY_S, answer_question
from support.aio import asynchronous

QUESTION = messages.TokenQuestion(7, ["very-secret", "unknown", "other"], "cb0071", 4.5)
FOUND: dict[str, Admission] = {
    "other": Admission(0, True, TokenScope("e", None), True),
    "very-secret": Admission(7, False, TokenScope("e", frozenset("ba")), False),
}


@asynchronous
async def test_what_tokens_open() -> None:
    """It is told in the order of the question, with its number. The look-up gets the caller's network, and how long it waits."""
    asked: list[tuple[Sequence[str], bytes, float]] = []

    async def look_up(tokens: Sequence[str], network: bytes, seconds: float) -> dict[str, Admission]:
        asked.append((tokens, network, seconds))
        return FOUND

    assert await answer_question(look_up, QUESTION) == messages.TokenAnswer(
        7,
        [
            Admission(7, False, TokenScope("e", frozenset(["a", "b"])), False),
            None,
            Admission(0, True, TokenScope("e", None), True),
        ],
    )
    assert asked == [(["very-secret", "unknown", "other"], b"\xcb\x00\x71", 4.5)]


@pytest.mark.parametrize(("seconds", "told"), [(0.0, LEAST_RETRY_S), (0.3, LEAST_RETRY_S), (42.0, 42.0)])
@asynchronous
async def test_it_cannot_be_said_now(seconds: float, told: float) -> None:
    """The seconds are never 0, which would mean that the tokens open nothing."""

    async def look_up(tokens: Sequence[str], network: bytes, seconds_left: float) -> dict[str, Admission]:
        raise UnavailableError(seconds)

    assert await answer_question(look_up, QUESTION) == messages.TokenAnswer(7, [], told)


def test_the_tokens_are_not_shown() -> None:
    """The repr of a message with tokens does not contain them."""
    assert "secret" not in f"{QUESTION!r} {messages.Revoked('very-secret')!r} {[QUESTION]} {QUESTION}"
