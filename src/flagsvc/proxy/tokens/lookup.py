"""Asks one upstream about tokens of callers, within a budget (behaviour: Tokens looked up upstream).

    callers ─→ find ─→ book ─ known? grant ─ unknown? none
                        └→ waiting ─→ one request for many tokens, at most `rate` a second ─→ upstream

A refusal or an outage of the upstream is never an answer about a token. The secrets of this process are shown to no other upstream.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice, zip_longest
from typing import Protocol

from flagsvc.core.background import SupervisedTask, delay_after_failure, wait_for_first
from flagsvc.core.clock import Clock
from flagsvc.core.errors import FlagsvcError, StoreError, UpstreamError
from flagsvc.core.log import Logger, OutageLog
from flagsvc.http.keys import salted
from flagsvc.proxy.tokens.book import KnownToken, TokenBook, TokenGrant, is_plausible, read_grant, unpack
from flagsvc.proxy.upstream import Upstream
from flagsvc.settings.environments import upstream_of_options
from flagsvc.settings.options import ProxyOptions, secrets_of
from flagsvc.settings.tokens import read_scope

MAX_WAITING = 1000
"""The most tokens that wait for an answer, and the most requests that wait for them. Further ones are turned away for a moment."""
LEFT_FREE = 5
"""How many places a network leaves free for each further place that it takes, up to the half of all."""
WAIT_S = 5.0
"""Seconds that a request waits for the answer about its tokens."""
RETRY_S = 1.0
"""Seconds after which a caller that is turned away may try again."""


def answer_deadline() -> float:
    """Return the moment of the running event loop until which a request waits that comes now."""
    return asyncio.get_running_loop().time() + WAIT_S


class UnavailableError(FlagsvcError):
    """A token cannot be looked up now. `seconds` is when to try again."""

    def __init__(self, seconds: float) -> None:
        super().__init__("the token cannot be looked up now")
        self.seconds = seconds


class Budget:
    """The requests about tokens that one process may send, to all upstreams together.

    They are `rate` a second, and as many at once as one second allows. `sent` counts those that were sent. `draw` returns random
    numbers in [0, 1).
    """

    def __init__(self, rate: float, clock: Clock, draw: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._draw = draw
        self._left = rate
        self._at = clock.monotonic()
        self.sent = 0

    async def take(self) -> None:
        """Wait until the next request is allowed.

        A part of the wait is random. Otherwise a caller that tries again every second would always find the same state: the places
        that the request before has freed are taken again.
        """
        now = self._clock.monotonic()
        self._left = min(self._rate, self._left + (now - self._at) * self._rate) - 1.0
        self._at = now
        if self._left < 0.0:
            await self._clock.sleep((self._draw() - self._left) / self._rate)


class Places:
    """How many of something wait, in all and of each network. An empty network has no share of its own, only a part of all.

    The more places a network has, the more it leaves free for others. So it can use half of all while no other network does, and a
    caller with a single token gets in beside any number of callers with many.
    """

    def __init__(self) -> None:
        self.taken = 0
        self._networks: dict[bytes, int] = {}

    def check(self, network: bytes, number: int) -> None:
        """Raise UnavailableError if there are too few places. One who needs none is never turned away."""
        further = self._networks.get(network, 0) + number - 1
        left_free = min(LEFT_FREE * further, MAX_WAITING // 2)
        if number and self.taken + number + left_free > MAX_WAITING:
            raise UnavailableError(RETRY_S)

    def take(self, network: bytes, number: int) -> None:
        """Take places. Raises UnavailableError if there are too few, and takes none then."""
        self.check(network, number)
        self.taken += number
        if network:
            self._networks[network] = self._networks.get(network, 0) + number

    def give_back(self, network: bytes, number: int) -> None:
        self.taken -= number
        left = self._networks.pop(network, number) - number
        if left:
            self._networks[network] = left

    @contextmanager
    def hold(self, network: bytes) -> Iterator[None]:
        """Hold one place while the block runs. Raises UnavailableError if there is none."""
        self.take(network, 1)
        try:
            yield
        finally:
            self.give_back(network, 1)


class WaitingPlaces:
    """The places of one process: of tokens that wait, and of the requests that wait for them."""

    def __init__(self) -> None:
        self.tokens = Places()
        self.requests = Places()


class OwnSecrets:
    """The secrets that the options have, and the secrets that they had since the start. Only digests are kept."""

    def __init__(self, options: ProxyOptions) -> None:
        self._upstreams: dict[bytes, set[str]] = {}
        self.add(options)

    def add(self, options: ProxyOptions) -> None:
        """Know the secrets of these options, too, and of their environments."""
        for secret in secrets_of(options):
            self._upstreams.setdefault(digest_of(secret), set())
        for part in (options, *(each.options for each in options.environments)):
            upstream = upstream_of_options(part)
            keys = (*part.client_keys, *part.exp_server_side_sdk_config_tokens)
            for made in (part.flagsvc_api_token, *(key for key in keys if read_scope(key) is not None)):
                self._upstreams.setdefault(digest_of(made), set()).add(upstream)

    def may_be_sent(self, token: str, upstream: str) -> bool:
        """Return whether an upstream may be asked about a token of a caller, by the identity of the upstream.

        A secret goes only to the upstream of its environment, and only if that has made it: its token, and keys in the form of a
        token. So a token may be listed first and looked up later.
        """
        upstreams = self._upstreams.get(digest_of(token))
        return upstreams is None or upstream in upstreams


def digest_of(secret: str) -> bytes:
    """Return the digest of a secret, as it comes in a header."""
    return salted(secret.encode("utf-8", "surrogateescape"))


MAX_ASKED = 100
"""The most tokens in one request."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
"""The bounds of the pause after a request that failed."""
STORE_S = 1.0
"""Seconds between a change and its storing; of many tokens, as many times longer as there are STORE_TOKENS."""
STORE_TOKENS = 5000


class TokenStore(Protocol):
    """Keeps the record of known tokens, which other processes may share."""

    async def load(self) -> bytes | None:
        """Return what was stored last, or None. Raises StoreError if it cannot be read now."""

    async def save(self, data: bytes) -> bool:
        """Store the record. Returns whether that went well."""

    async def aclose(self) -> None:
        """Close the connections."""


class WaitingToken:
    """A token that waits for the answer about it, and the network of the first caller that sent it."""

    def __init__(self, network: bytes) -> None:
        self.network = network
        self.answer: asyncio.Future[TokenGrant | None] = asyncio.get_running_loop().create_future()


class TokenLookup:
    """Looks up the tokens of one upstream, as long as they are used. `is_over` tells that they are not any more."""

    def __init__(
        self,
        upstream: Upstream,
        budget: Budget,
        places: WaitingPlaces,
        store: TokenStore,
        *,
        clock: Clock,
        log: Logger,
        draw: Callable[[], float],
        interval_s: float,
        on_revoke: Callable[[str], object],
        on_restore: Callable[[list[str]], object],
    ) -> None:
        """Take the parts. Known tokens are asked about again every `interval_s` seconds.

        `budget` and `places` are those of the process. `on_revoke` is called with a token that the upstream no longer knows, or
        that opens something else now, and `on_restore` with the digests of tokens that storage has told. `draw` returns random
        numbers in [0, 1).
        """
        self.book = TokenBook()
        self.is_over = False
        self._users: set[object] = set()
        self._upstream = upstream
        self._budget = budget
        self._places = places
        self._store = store
        self._clock = clock
        self._draw = draw
        self._interval_s = interval_s
        self._on_revoke = on_revoke
        self._on_restore = on_restore
        self._waiting: dict[str, WaitingToken] = {}
        self._unchecked: dict[str, None] = {}
        self._wanted = asyncio.Event()
        self._check_due, self._check_hurries = asyncio.Event(), asyncio.Event()
        self._changed = asyncio.Event()
        self._failures = 0
        self._paused_until = 0.0
        self._outage = OutageLog(log, "tokens could not be looked up", "tokens are looked up again")
        bodies = {
            "looking up tokens": self._run,
            "looking up known tokens": self._check_known,
            "storing tokens": self._keep_stored,
        }
        self._loops = [SupervisedTask(name, body, clock=clock, log=log, draw=draw) for name, body in bodies.items()]

    @property
    def known(self) -> int:
        return len(self.book.known)

    @property
    def restarts(self) -> int:
        return sum(loop.restarts for loop in self._loops)

    def start(self, user: object) -> None:
        self._users.add(user)
        for loop in self._loops:
            loop.start()

    async def stop(self, user: object) -> None:
        """End the use. The last user stops the loops, turns away the callers that wait, and stores the changes."""
        self._users.discard(user)
        if self._users or self.is_over:
            return
        self.is_over = True
        self._turn_away()
        for loop in self._loops:
            await loop.stop()
        if self._changed.is_set():
            await self._save()
        await self._upstream.aclose()
        await self._store.aclose()

    def check_now(self) -> None:
        """Ask about all known tokens again now, also within a pause. They stay known until the upstream has answered."""
        self._check(self.book.texts())
        self._check_hurries.set()

    # ---- callers

    def is_refused(self, token: str) -> bool:
        """Return whether a token is known to be unknown, so that no caller needs to wait."""
        return not is_plausible(token) or self.book.is_unknown(token, self._clock.monotonic())

    def is_known(self, token: str) -> bool:
        """Return whether the upstream knew a token when it was asked last."""
        return self.book.find(token) is not None

    async def find(self, token: str, network: bytes, deadline: float) -> TokenGrant | None:
        """Return what a token opens; None if the upstream does not know it. The rest is as in `find_all`."""
        return (await self.find_all([token], network, deadline)).get(token)

    async def find_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, TokenGrant]:
        """Return what each of these tokens opens. Tokens that the upstream does not know are left out.

        A token that was stored counts as known for `interval_s` seconds since it was checked, and longer while the upstream is
        away. When it is first used, it is asked about again. The answers are waited for until `deadline`, a moment of the event
        loop. Raises UnavailableError if one of the tokens cannot be looked up now.
        """
        found, old, asked = self._recall(tokens)
        if asked:
            try:
                found |= await self._wait_for(asked, network, deadline)
            except UnavailableError:
                if len(old) < len(asked):
                    raise
                found |= {token: self._use(token, known) for token, known in old.items()}
        return found

    def _use(self, token: str, known: KnownToken) -> TokenGrant:
        """Return what a known token opens. If it was only stored, its text is known from now on, and it is asked about soon."""
        if known.text is None:
            self.book.add(token, known.grant, known.checked_at)
            self._check([token])
        return known.grant

    def _check(self, tokens: Iterable[str]) -> None:
        """Have these tokens asked about again."""
        self._unchecked.update(dict.fromkeys(tokens))
        self._check_due.set()

    def _recall(self, tokens: Sequence[str]) -> tuple[dict[str, TokenGrant], dict[str, KnownToken], list[str]]:
        """Return what tokens open that are known; those that were stored long ago; and those to ask about, which include these."""
        found: dict[str, TokenGrant] = {}
        old: dict[str, KnownToken] = {}
        asked = []
        now = self._clock.now()
        for token in tokens:
            if self.is_refused(token):
                continue
            known = self.book.find(token)
            if known is not None and (known.text is not None or now - known.checked_at < self._interval_s):
                found[token] = self._use(token, known)
                continue
            asked.append(token)
            if known is not None:
                old[token] = known
        return found, old, asked

    async def _wait_for(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, TokenGrant]:
        """Have the upstream asked about tokens, and return what it says. Raises UnavailableError."""
        if self.is_over:  # no task would ask
            raise UnavailableError(RETRY_S)
        pause = self._paused_until - self._clock.monotonic()
        if pause > 0:
            raise UnavailableError(pause)
        with self._places.requests.hold(network):
            self._enqueue([token for token in tokens if token not in self._waiting], network)
            answers = {token: self._waiting[token].answer for token in tokens}
            seconds = deadline - asyncio.get_running_loop().time()
            _, late = await asyncio.wait(answers.values(), timeout=max(0.0, seconds))
        if late:
            raise UnavailableError(RETRY_S)
        return {token: grant for token, answer in answers.items() if (grant := answer.result()) is not None}

    def _enqueue(self, tokens: Sequence[str], network: bytes) -> None:
        """Let tokens wait. Raises UnavailableError if there is no room for all of them."""
        if tokens:
            self._places.tokens.take(network, len(tokens))
            self._waiting |= {token: WaitingToken(network) for token in tokens}
            self._wanted.set()

    def _dequeue(self, token: str) -> asyncio.Future[TokenGrant | None] | None:
        """Let a token wait no longer. Returns where its answer is waited for, or None if it did not wait."""
        waiting = self._waiting.pop(token, None)
        if waiting is None:
            return None
        self._places.tokens.give_back(waiting.network, 1)
        return waiting.answer

    # ---- the loops

    async def _run(self) -> None:
        """Ask about the tokens that wait, many at once."""
        while True:
            await self._wanted.wait()
            await self._budget.take()
            tokens = self._next_tokens()
            if tokens:  # a check of known tokens may have turned all away meanwhile
                await self._ask_about(tokens)
            if not self._waiting:
                self._wanted.clear()

    def _next_tokens(self) -> list[str]:
        """Return the tokens of the next question: the tokens that wait longest, and equally many of each network."""
        networks: dict[bytes, list[str]] = {}
        for token, waiting in self._waiting.items():
            networks.setdefault(waiting.network, []).append(token)
        rounds = chain.from_iterable(zip_longest(*networks.values()))
        return list(islice((token for token in rounds if token is not None), MAX_ASKED))

    async def _check_known(self) -> None:
        """Ask about every known token again, once in an interval and on request."""
        await self._restore()
        due = self._draw_next_check()
        while True:
            await wait_for_first(self._check_due.wait(), self._clock.sleep(max(0.0, due - self._clock.monotonic())))
            if self._clock.monotonic() >= due:
                due = self._draw_next_check()
                self._check(self.book.texts())
            if await self._check_requested():
                self._changed.set()  # the moments of the checks have changed

    def _draw_next_check(self) -> float:
        """Return the moment of the next check of all tokens, in seconds of `Clock.monotonic`."""
        return self._clock.monotonic() + self._interval_s * (1.0 - self._draw() / 10)

    async def _check_requested(self) -> bool:
        """Ask about the tokens that are to be checked, until the upstream has answered. Returns whether there were any."""
        self._check_due.clear()
        any_checked = bool(self._unchecked)
        not_before = 0.0
        while self._unchecked:
            await self._wait_to_check(not_before)
            tokens = list(islice(self._unchecked, MAX_ASKED))
            for token in tokens:  # they may be requested again before the answer comes
                del self._unchecked[token]
            known = [token for token in tokens if self.book.find(token) is not None]
            if known and not await self._ask_about(known):
                self._unchecked.update(dict.fromkeys(known))  # they stay known while the upstream is away
                not_before = self._clock.monotonic() + LONGEST_PAUSE_S
        return any_checked

    async def _wait_to_check(self, not_before: float) -> None:
        """Wait until the upstream may be asked again about known tokens. One who has called `check_now` waits for no pause."""
        hurries = self._check_hurries
        while not hurries.is_set() and (pause := max(not_before, self._paused_until) - self._clock.monotonic()) > 0:
            await wait_for_first(hurries.wait(), self._clock.sleep(pause))
        await self._budget.take()
        hurries.clear()

    async def _ask_about(self, tokens: Sequence[str]) -> bool:
        """Ask the upstream about tokens, and tell those that wait. Returns whether it has answered."""
        self._budget.sent += 1
        try:
            told = await self._upstream.validate(tokens)
        except UpstreamError as error:
            self._record_failure(error)
            return False
        self._failures, self._paused_until = 0, 0.0
        self._outage.log_recovery()
        grants = dict(found for each in told if (found := read_grant(each)) is not None)
        for token in tokens:
            self._settle(token, grants.get(token))
        return True

    def _settle(self, token: str, grant: TokenGrant | None) -> None:
        """Note the answer about a token, and tell those that wait for it."""
        known = self.book.find(token)
        before = None if known is None else known.grant
        if grant is None:
            self.book.add_unknown(token, self._clock.monotonic())
        else:
            for forgotten in self.book.add(token, grant, self._clock.now()):
                self._on_revoke(forgotten)
        if before is not None and before != grant:
            self._on_revoke(token)
        if before != grant or (known is not None and known.text is None):
            self._changed.set()
        answer = self._dequeue(token)
        if answer is not None and not answer.done():
            answer.set_result(grant)

    def _record_failure(self, error: UpstreamError) -> None:
        self._failures += 1
        self._outage.log_failure(error)
        pause = delay_after_failure(
            self._failures, self._draw(), FIRST_PAUSE_S, retry_after=error.retry_after, ceiling=LONGEST_PAUSE_S
        )
        self._paused_until = self._clock.monotonic() + pause
        self._turn_away(pause)

    def _turn_away(self, seconds: float = RETRY_S) -> None:
        """Tell all that wait that their tokens cannot be looked up now."""
        for token in list(self._waiting):
            answer = self._dequeue(token)
            if answer is not None and not answer.done():
                answer.set_exception(UnavailableError(seconds))
                answer.exception()  # maybe no caller waits any more

    # ---- storage

    async def _restore(self) -> bool:
        """Know the tokens that are stored, too. They are read in slices, so that callers do not wait for all of them.

        Returns whether the record could be read. If not, `_keep_stored` tries that again, also without another change.
        """
        try:
            data = await self._store.load()
        except StoreError:
            self._changed.set()
            return False
        parts = None if data is None else unpack(data)
        if parts is None:
            return True
        stored: dict[str, KnownToken] = {}
        for part in parts:
            stored |= part
            await asyncio.sleep(0)
        before = self.book.known
        self.book.restore(stored)
        if new := [digest for digest in stored if digest not in before]:
            self._on_restore(new)
        return True

    async def _keep_stored(self) -> None:
        """Store the known tokens after each change, and again after a failure."""
        failures = 0
        while True:
            await self._changed.wait()
            seconds = STORE_S * (1 + self.known // STORE_TOKENS)
            if failures:
                seconds = delay_after_failure(failures, self._draw(), seconds, ceiling=LONGEST_PAUSE_S)
            await self._clock.sleep(seconds)
            self._changed.clear()
            is_saved = False
            try:
                is_saved = await self._save()
            finally:
                if not is_saved:
                    self._changed.set()  # if the loop ends now, `stop` stores them
            failures = 0 if is_saved else failures + 1

    async def _save(self) -> bool:
        """Store the known tokens beside the tokens that other processes have stored. Returns whether that went well.

        The record is made in slices, so that callers do not wait for all of it. A record that cannot be read now is not
        overwritten: it may have tokens that this process does not know.
        """
        if not await self._restore():
            return False
        parts = []
        for part in self.book.pack():
            parts.append(part)
            await asyncio.sleep(0)
        return await self._store.save(b"".join(parts))
