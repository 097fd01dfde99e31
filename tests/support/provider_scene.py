"""A flag server with an OpenID provider, and the way of people to the provider and back."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from flagsvc.server.sign_in.provider import Provider, ProviderSettings
from flagsvc.server.sign_in.ways import CALLBACK, SignInWays
from flagsvc.server.store.resources import users
from flagsvc.settings.roles import GroupRoles
from flagsvc.testing import FakeClock
from support import processes
from support.flagservers import AppClient, app_client
from support.page_scene import COOKIE, Visitor
from support.provider import CLIENT, SECRET, TestProvider, running_provider

RULES = (("flag-admins", "admin"), ("devs", "editor"), ("shop", "member:shop"))
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "users": [
        {"name": "ben", "email": "ben@flags.example", "rootRole": "viewer"},
        {"name": "chief", "email": "chief@flags.example", "rootRole": "admin"},
    ],
}
URL = "http://127.0.0.1:4242"


@dataclass
class Scene:
    """A flag server with a provider, and a clock for both."""

    client: AppClient
    provider: TestProvider
    clock: FakeClock

    def leave(self, visitor: Visitor, goal: str = "/try") -> str:
        """Begin to sign in, and return the address at the provider. The cookie is kept."""
        answer = visitor.see(f"/sign-in/provider?next={goal}")
        assert answer.status == 303, answer.text
        keep(visitor, answer)
        return answer.headers["location"]

    def come_back(self, visitor: Visitor, query: str) -> processes.Answer:
        """Come back with the query of an answer."""
        answer = visitor.see(f"/sign-in/callback?{query}")
        if answer.status == 303:
            keep(visitor, answer)
        return answer

    def sign_in(self, visitor: Visitor | None = None, **claims: Any) -> processes.Answer:
        """Go the whole way, and return the last answer."""
        visitor = visitor or Visitor(self.client, None)
        return self.come_back(visitor, self.provider.sign_in(self.leave(visitor), **claims))

    def role_of(self, name: str) -> tuple[str, list[str]]:
        """Return the root role of a user, and the projects with a role."""
        with self.client.server.store.reading() as tx:
            found = next(each for each in users.list_with_roles(tx) if name in (each["user"], each["email"]))
        return found["role"], [each["project"] for each in found["projectRoles"]]


def keep(visitor: Visitor, answer: processes.Answer) -> None:
    """Keep the first cookie of an answer. After the way back it is the cookie of the session."""
    found = COOKIE.match(answer.headers.get("set-cookie", ""))
    assert found is not None
    visitor.cookie = f"{found[1]}={found[2]}"


def settings_of(provider: TestProvider, **given: Any) -> ProviderSettings:
    return ProviderSettings(provider.issuer, CLIENT, f"{URL}{CALLBACK}", SECRET)._replace(**given)


@contextmanager
def provider_scene(database_url: str, rules: GroupRoles = RULES) -> Iterator[Scene]:
    """Give a server with a provider and rules for groups."""
    clock = FakeClock()
    with running_provider() as provider:
        provider.now = clock.now
        ways = SignInWays(group_roles=rules, provider=Provider(settings_of(provider), clock))
        with app_client(database_url, given=GIVEN, clock=clock, url=URL, ways=ways) as client:
            yield Scene(client, provider, clock)
