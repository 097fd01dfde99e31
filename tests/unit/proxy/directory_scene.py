"""A directory of tokens over upstreams in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import cast

from flagsvc import ProxyOptions
from flagsvc.proxy.generations.admission import TokenDirectory
from flagsvc.proxy.generations.feeds import Feed
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.proxy.tokens import Admission, TokenGrant, TokenLookup, TokenScope, UnavailableError
from flagsvc.proxy.tokens.lookup import answer_deadline
from flagsvc.settings.environments import upstream_of_options
from flagsvc.testing import FakeClock, RecordingLog


class FakeLookup:
    """What one upstream knows. `asked` has the tokens that it was asked about, `deadlines` until when each answer was awaited."""

    def __init__(self, grants: Mapping[str, TokenGrant]) -> None:
        self.grants = grants
        self.asked: list[str] = []
        self.deadlines: list[float] = []
        self.refused: set[str] = set()
        self.fault: UnavailableError | None = None
        self.meanwhile: Callable[[], object] = lambda: None

    def is_refused(self, token: str) -> bool:
        """Return whether a token is known to be unknown."""
        return token in self.refused

    def is_known(self, token: str) -> bool:
        """Return whether the upstream was asked about a token, and knows it."""
        return token in self.asked and token in self.grants

    async def find(self, token: str, network: bytes, deadline: float) -> TokenGrant | None:
        return (await self.find_all([token], network, deadline)).get(token)

    async def find_all(self, tokens: Sequence[str], network: bytes, deadline: float) -> dict[str, TokenGrant]:
        self.asked += tokens
        self.deadlines.append(deadline)
        if self.fault is not None:
            raise self.fault
        self.meanwhile()
        return {token: self.grants[token] for token in tokens if token in self.grants}


def upstream_at(url: str, headers: Mapping[str, str] | None = None) -> str:
    """Return the identity of the upstream at an address, which is asked with these headers."""
    return upstream_of_options(
        ProxyOptions(flagsvc_url=url, flagsvc_api_token="own", client_keys="listed", upstream_headers=headers or {})
    )


def number_of(name: str) -> int:
    """Return the number of the environment of a name."""
    return int.from_bytes(name.encode(), "big")


def name_of(admission: Admission | None) -> str | None:
    """Return the name of the environment that a token opens; None if it opens none."""
    return None if admission is None else admission.environment.to_bytes(20, "big").strip(b"\0").decode()


class Place:
    """One environment: its name, the token of its upstream, the upstream's address, and what looks up tokens there.

    `project` is its only project, and `headers` are sent with every request to the upstream.
    """

    def __init__(
        self,
        name: str,
        token: str,
        url: str = "https://one",
        lookup: FakeLookup | None = None,
        project: str | None = None,
        **headers: str,
    ) -> None:
        self.name, self.number = name, number_of(name)
        self.token, self.upstream_id = token, upstream_at(url, headers)
        self.lookup, self.project = lookup, project
        self.is_ready = True

    @property
    def tokens(self) -> TokenLookup | None:
        return cast("TokenLookup | None", self.lookup)


class DirectoryScene:
    """A directory of these environments. The environments in `coming` replace some of them later."""

    def __init__(self, *places: Place) -> None:
        self.places = {each.name: each for each in places}
        self.coming: list[Place] = []
        self.log, self.clock = RecordingLog(), FakeClock()
        setup = make_setup(ProxyOptions(flagsvc_url="https://one", flagsvc_api_token="own", client_keys="listed", logger=self.log))
        self.secrets = setup.own_secrets
        self.directory = TokenDirectory(
            replace(setup, clock=self.clock), lambda: cast("dict[str, Feed]", self.places), lambda: cast("list[Feed]", self.coming)
        )

    async def look_up(self, token: str) -> Admission | None:
        return (await self.look_up_all(token)).get(token)

    async def look_up_all(self, *tokens: str) -> dict[str, Admission]:
        return await self.directory.look_up_all(tokens, b"", answer_deadline())

    def asked(self) -> dict[str, list[str]]:
        """Return what each environment was asked about, by name."""
        return {name: each.lookup.asked for name, each in self.places.items() if each.lookup and each.lookup.asked}


def grant(environment: str, *projects: str, server: bool = False) -> TokenGrant:
    """Return a grant for projects; for all without any."""
    return TokenGrant(server, TokenScope(environment, frozenset(projects) or None))


def known(**grants: TokenGrant) -> FakeLookup:
    """Return an upstream that knows tokens: `a_production_1` is `a:production.1`."""
    return FakeLookup({spelled(name): each for name, each in grants.items()})


def spelled(name: str) -> str:
    """Return the token of a name."""
    project, environment, secret = name.split("_")
    return f"{'*' if project == 'all' else project}:{environment}.{secret}"
