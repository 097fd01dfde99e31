"""Which environment of this process a token belongs to (behaviour: Tokens looked up upstream).

A token is sent only to an upstream of the environment that it names. A token that names no environment is looked up if all
environments have the same upstream. A secret of this process is sent to no other upstream than its own. What an upstream says
about a token opens only environments of that upstream, and of these the narrowest one that has all projects of the token. One
without a configuration comes last. The order in which they are given does not matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from flagsvc.core.log import Throttle
from flagsvc.http.token_questions import known_token
from flagsvc.proxy.generations.feeds import Feed
from flagsvc.proxy.generations.setup import ProxySetup
from flagsvc.proxy.tokens import (
    Admission,
    TokenGrant,
    TokenLookup,
    TokenScope,
    UnavailableError,
    exact_scope_of_text,
    scope_of_text,
)
from flagsvc.proxy.tokens.lookup import RETRY_S
from flagsvc.settings.tokens import EVERY_PROJECT

REMEDY = "set flagsvcApiToken to one backend token that has all of these projects, without projectName"
"""What an operator can do about a valid token of projects that no environment has together."""
REFUSED_TOKENS_S = 600.0
"""Seconds between two log lines about valid tokens of an environment that this process does not serve."""
MAX_TRIES = 3
"""How often a token is looked up for one request, if tokens are revoked or its environment is replaced meanwhile."""
UNKNOWN_SCOPE_S = 10.0
"""Seconds after which a caller may try again while the scope of the upstream's own token is not known."""


class Answers:
    """What upstreams have said about the tokens of one request. `refused` are valid ones that no environment opens to."""

    def __init__(self) -> None:
        self.found: dict[str, Admission] = {}
        self.failed: dict[str, UnavailableError] = {}
        self.refused: list[tuple[str, tuple[TokenScope, str]]] = []


class TokenDirectory:
    """Looks up tokens in the environments of this process."""

    def __init__(
        self,
        setup: ProxySetup,
        list_feeds: Callable[[], Mapping[str, Feed]],
        list_waiting: Callable[[], Iterable[Feed]],
    ) -> None:
        """Take the setup of the process. `list_feeds` returns the feeds that answer, by name, and `list_waiting` all others."""
        self._list = list_feeds
        self._list_waiting = list_waiting
        self._own_secrets = setup.own_secrets
        self._log = setup.log
        self._throttle = Throttle(setup.clock, REFUSED_TOKENS_S)

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing, without asking."""
        return all(lookup.is_refused(token) for _, lookup in self._choose(token)) and not self._may_come(token)

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what each of these tokens opens. Those that open nothing are left out.

        All upstreams together are waited for until `deadline`, a moment of the event loop. Raises UnavailableError if it cannot be
        found out now for one of the tokens.
        """
        chosen = {token: places for token in tokens if (places := self._choose(token))}
        answers = Answers()
        while chosen:
            environment, lookup = next(iter(chosen.values()))[0]
            asked = {token for token, places in chosen.items() if places[0][1] is lookup}
            try:
                in_time = share_of_time(deadline, chosen.values())
                grants = await lookup.find_all([token for token in chosen if token in asked], network, in_time)
            except UnavailableError as error:
                answers.failed |= dict.fromkeys(asked, error)
            else:
                await self._place_all(grants, environment.upstream_id, deadline, answers)
            rests = {token: places[1:] if token in asked else places for token, places in chosen.items()}
            chosen = {token: rest for token, rest in rests.items() if rest and token not in answers.found}
        failures = [error for token, error in answers.failed.items() if token not in answers.found]
        told = dict(answers.refused)
        coming = any(self._may_come(token, told.get(token)) for token in tokens if token not in answers.found)
        if failures or coming:
            raise failures[0] if failures else UnavailableError(RETRY_S)
        for scope, upstream in (why for token, why in answers.refused if token not in answers.found):
            self._warn(scope, upstream)
        return answers.found

    async def _place_all(self, grants: Mapping[str, TokenGrant], upstream: str, deadline: float, answers: Answers) -> None:
        """Note what valid tokens open in the environments of an upstream."""
        for token, grant in grants.items():
            try:
                opened = await self._place(grant, upstream, deadline)
            except UnavailableError as error:
                answers.failed[token] = error
                continue
            if opened is None:
                answers.refused.append((token, (grant.scope, upstream)))
            else:
                answers.found[token] = opened

    def _looking(self, upstream: str | None = None) -> list[tuple[Feed, TokenLookup]]:
        """Return the environments that look up tokens, of one upstream or of all, by name."""
        found = [(each, each.tokens) for each in self._list().values() if each.tokens is not None]
        return sorted(
            (pair for pair in found if upstream is None or pair[0].upstream_id == upstream),
            key=lambda pair: pair[0].name,
        )

    def _choose(self, token: str) -> list[tuple[Feed, TokenLookup]]:
        """Return the environments whose upstreams may know a token: one for each upstream, the most likely one.

        Environments that know the token come first, so that no other upstream gets a question about it.
        """
        named = scope_of_text(token)
        looking = [pair for pair in self._looking() if self._own_secrets.may_be_sent(token, pair[0].upstream_id)]
        if named is None:
            one = len({each.upstream_id for each in self._list().values()}) == 1
            return looking[:1] if one else []
        chosen: dict[str, tuple[Feed, TokenLookup]] = {}
        for is_known, is_covered in ((True, False), (False, True), (False, False)):
            for each, lookup in looking:
                own = scope_of_text(each.token)
                fits = own is None or (own.covers(named) if is_covered else own.environment == named.environment)
                if fits and (lookup.is_known(token) or not is_known):
                    chosen.setdefault(each.upstream_id, (each, lookup))
        return list(chosen.values())

    def _may_come(self, token: str, told: tuple[TokenScope, str] | None = None) -> bool:
        """Return whether a token that opens nothing now may open an environment that is coming. `told` is what an upstream says."""
        coming = list(self._list_waiting())
        later = {**self._list(), **{each.name: each for each in coming}}
        one = len({each.upstream_id for each in later.values()}) == 1
        asking = [each for each in coming if each.tokens and self._own_secrets.may_be_sent(token, each.upstream_id)]
        return any(
            most_of(each, told[0].environment).covers(told[0])
            if told is not None and told[1] == each.upstream_id
            else each.tokens is not None and not each.tokens.is_refused(token) and may_open(token, each, one)
            for each in asking
        )

    async def _place(self, grant: TokenGrant, upstream: str, deadline: float) -> Admission | None:
        """Return the environment of an upstream that a valid token opens: the narrowest environment that has all of its projects.

        Environments with a configuration come first. Raises UnavailableError if no environment is known to have the projects, and
        the scope of an environment that may have them is not known now.
        """
        fitting: list[tuple[TokenScope, Feed]] = []
        unavailable: UnavailableError | None = None
        for each, lookup in self._looking(upstream):
            if not most_of(each, grant.scope.environment).covers(grant.scope):
                continue
            try:
                scope = await find_scope(each, lookup, deadline)
            except UnavailableError as error:
                unavailable = error
                continue
            if scope.covers(grant.scope):
                fitting.append((scope, each))
        if fitting:
            scope, chosen = min(fitting, key=lambda pair: (not pair[1].is_ready, pair[0].breadth))
            return Admission(chosen.number, grant.is_server, grant.scope, grant.scope == scope)
        if unavailable is not None:
            raise unavailable
        return None

    def _warn(self, scope: TokenScope, upstream: str) -> None:
        """Log now and then that a valid token is of another environment or of other projects. The token is not shown."""
        if not self._throttle.allows(scope.environment):
            return
        projects = "*" if scope.projects is None else ", ".join(sorted(scope.projects))
        told = {"token_environment": scope.environment, "token_projects": projects}
        names = [each.name for each, _ in self._looking(upstream) if most_of(each, "").environment == scope.environment]
        if not names:
            self._log.warn("a valid token is refused: this process does not serve its environment", **told)
            return
        if any(names):
            told["environments"] = ", ".join(names)
        what = "a valid token is refused: no environment of this process has all of its projects"
        self._log.warn(what, **told, remedy=REMEDY)


def most_of(environment: Feed, default: str) -> TokenScope:
    """Return the most that can be in an environment, by its options. `default` is its environment upstream if they do not tell."""
    named = scope_of_text(environment.token) or TokenScope(default, None)
    return named.limited_to(environment.project)


def may_open(token: str, environment: Feed, one: bool) -> bool:
    """Return whether a token may be one of an environment, by its text. `one` tells that all environments have one upstream."""
    named, exact = scope_of_text(token), exact_scope_of_text(token)
    if named is None:
        return one
    most = most_of(environment, named.environment)
    return most.environment == named.environment if exact is None else most.covers(exact)


async def find_scope(environment: Feed, lookup: TokenLookup, deadline: float) -> TokenScope:
    """Return what is in an environment: what its token opens, and of that its only project. Raises UnavailableError."""
    own = exact_scope_of_text(environment.token) or await ask_own_scope(environment.token, lookup, deadline)
    return own.limited_to(environment.project)


def share_of_time(deadline: float, places: Iterable[Sequence[tuple[Feed, TokenLookup]]]) -> float:
    """Return the moment until which the next upstream is waited for. All upstreams have equal shares of the time, so that no
    upstream can use all of it."""
    upstreams = {id(lookup) for each in places for _, lookup in each}
    now = asyncio.get_running_loop().time()
    return now + (deadline - now) / len(upstreams)


async def ask_own_scope(token: str, lookup: TokenLookup, deadline: float) -> TokenScope:
    """Return what the upstream says that its own token opens. Raises UnavailableError."""
    grant = await lookup.find(token, b"", deadline)
    if grant is None:
        raise UnavailableError(UNKNOWN_SCOPE_S)
    return grant.scope


class AdmitToken(Protocol):
    """Looks up the tokens that no option lists, here or in the parent process."""

    def is_refused(self, token: str) -> bool:
        """Return whether it is known that a token opens nothing."""

    async def look_up_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, Admission]:
        """Return what tokens open. Those that open nothing are left out. `deadline` is a moment of the event loop.

        Raises UnavailableError if the answer about one of the tokens is not known now.
        """


def describe_admission(token: str, admission: Admission) -> dict[str, Any]:
    """Return what a token opens that was looked up, in the words of the real server."""
    environment, projects = admission.scope
    kind = "client" if admission.is_server else "frontend"
    return known_token(token, kind, [EVERY_PROJECT] if projects is None else sorted(projects), environment)
