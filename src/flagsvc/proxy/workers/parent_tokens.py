"""The worker's side of looking up tokens: the parent is asked, because only it asks the upstream."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import NamedTuple

from flagsvc.core.clock import Clock
from flagsvc.proxy.tokens import Admission, TokenBook, UnavailableError, WaitingPlaces
from flagsvc.proxy.tokens.book import MAX_KNOWN, digest_of, is_plausible
from flagsvc.proxy.tokens.lookup import RETRY_S
from flagsvc.proxy.workers import messages

LATE_S = 1.0
"""Seconds that the parent's answer may come after its own deadline."""
UNKNOWN_S = 5.0
"""Seconds for which the parent is not asked again about an unknown token. They begin when the parent has forgotten the token."""


class Question(NamedTuple):
    """A question that the parent has not answered yet. It takes `places`. The answer is what the tokens open that open anything."""

    tokens: Sequence[str]
    network: bytes
    places: int
    answer: asyncio.Future[dict[str, Admission]]


class ParentTokens:
    """Asks the parent about tokens, and lets no more wait than the parent itself does. `send` sends a message to it.

    A token that the parent knows to be valid needs no place: the parent answers at once, so a flood must not keep it out.
    """

    def __init__(self, send: Callable[[messages.Message], object], clock: Clock) -> None:
        self._send = send
        self._clock = clock
        self._book = TokenBook(UNKNOWN_S)
        self._places = WaitingPlaces()
        self._valid: dict[str, None] = {}
        self._last = 0
        self._questions: dict[int, Question] = {}
        self._asked: dict[str, Question] = {}

    def is_refused(self, token: str) -> bool:
        """Return whether a token opened nothing a moment ago."""
        return not is_plausible(token) or self._book.is_unknown(token, self._clock.monotonic())

    def forget_refused(self) -> None:
        """Ask the parent again about tokens that opened nothing: there may be other environments now."""
        self._book = TokenBook(UNKNOWN_S)

    async def ask(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what the parent says that tokens open. Those that open nothing are left out.

        The parent has until `deadline`, a moment of the event loop. Raises UnavailableError.
        """
        asked = [token for token in tokens if not self.is_refused(token)]
        if not asked:
            return {}
        seconds = deadline - asyncio.get_running_loop().time()
        with self._places.requests.hold(network) if self._count_new(asked) else nullcontext():
            self._start([token for token in asked if token not in self._asked], network, seconds)
            answers = {token: self._asked[token].answer for token in asked}
            _, late = await asyncio.wait(set(answers.values()), timeout=max(0.0, seconds + LATE_S))
        if late:
            raise UnavailableError(RETRY_S)
        return {token: opened for token, answer in answers.items() if (opened := answer.result().get(token))}

    def _start(self, tokens: Sequence[str], network: bytes, seconds: float) -> None:
        """Send a question, if there is anything to ask. Raises UnavailableError if too many tokens wait."""
        if not tokens:
            return
        places = self._count_new(tokens)
        self._places.tokens.take(network, places)
        self._last += 1
        question = Question(tokens, network, places, asyncio.get_running_loop().create_future())
        self._questions[self._last] = question
        self._asked |= dict.fromkeys(tokens, question)
        self._send(messages.TokenQuestion(self._last, list(tokens), network.hex(), seconds))

    def resolve(self, answer: messages.TokenAnswer) -> None:
        """Pass an answer of the parent on to the callers that wait for it."""
        question = self._questions.pop(answer.number, None)
        if question is None:
            return
        for token in question.tokens:
            del self._asked[token]
        if answer.retry_s:
            # The places stay taken for a moment, so that a flood does not reach the parent as fast as it comes.
            later = asyncio.get_running_loop().call_later
            later(RETRY_S, self._places.tokens.give_back, question.network, question.places)
            question.answer.set_exception(UnavailableError(answer.retry_s))
            question.answer.exception()  # maybe no caller waits any more
            return
        self._places.tokens.give_back(question.network, question.places)
        found = zip(question.tokens, answer.opened, strict=True)
        opened = {token: each for token, each in found if each is not None}
        for token in question.tokens:
            if token not in opened:
                self._book.add_unknown(token, self._clock.monotonic())
                self._valid.pop(digest_of(token), None)
        question.answer.set_result(opened)

    def _count_new(self, tokens: Sequence[str]) -> int:
        """Return how many of these tokens are not known to be valid."""
        return sum(digest_of(token) not in self._valid for token in tokens)

    def note_valid(self, digests: Sequence[str]) -> None:
        self._valid.update(dict.fromkeys(digests))
        for _ in range(len(self._valid) - MAX_KNOWN):
            del self._valid[next(iter(self._valid))]
