"""Our proxy on the real flag server, npm `unleash-server` with PostgreSQL, and the reference proxy beside it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest

from support import processes

FEATURES = "/projects/default/features"
CONSTRAINT = {
    "contextName": "appName",
    "operator": "IN",
    "values": ["web"],
    "inverted": False,
    "caseInsensitive": False,
}
CONTEXTS = [
    f"?userId={user}&sessionId=s{user}&appName={app}&remoteAddress=10.0.0.{user}&properties[plan]={plan}"
    for user in range(1, 26)
    for app, plan in (("web", "pro"), ("mobile", "free"))
]


@dataclass(frozen=True)
class World:
    """A flag server, our proxy and the reference proxy on it."""

    server: processes.FlagServer
    ours: processes.Proxy
    reference: processes.Proxy

    def make(self, name: str, *strategies: dict[str, Any]) -> None:
        """Make a feature over the admin API and switch it on in the environment of the proxies."""
        self.server.admin(FEATURES, {"name": name, "type": "release", "impressionData": False})
        place = f"{FEATURES}/{name}/environments/development"
        for strategy in strategies:
            self.server.admin(f"{place}/strategies", strategy)
        self.server.admin(f"{place}/on", {})

    def see(self, name: str, *, there: bool = True) -> None:
        """Return when the toggle is on in both proxies, or no longer is."""
        for proxy in (self.ours, self.reference):
            proxy.program.wait(lambda p=proxy: (name in p.toggles("?userId=1")) is there, f"told of {name}", 20)  # type: ignore[misc]


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Give the three programs, with flags of every usual kind made."""
    settings = {
        "UNLEASH_FETCH_INTERVAL": "100",
        "UNLEASH_METRICS_INTERVAL": "300",
        "UNLEASH_ENVIRONMENT": "development",
    }
    with ExitStack() as stack:
        server = stack.enter_context(processes.unleash_server(stack.enter_context(processes.postgresql())))
        ours = stack.enter_context(processes.our_proxy(server.url, **settings))
        reference = stack.enter_context(
            processes.reference_proxy(server.url, **{**settings, "UNLEASH_APP_NAME": "reference"})
        )
        found = World(server, ours, reference)
        make_flags(found)
        found.see("last")
        yield found


def rollout(percentage: int, group: str, **more: Any) -> dict[str, Any]:
    """Return a flexible rollout by user."""
    parameters = {"rollout": str(percentage), "stickiness": "userId", "groupId": group}
    return {"name": "flexibleRollout", "parameters": parameters, **more}


def make_flags(world: World) -> None:
    """Make a rollout, a constraint, a segment, variants, a dependency and a user list."""
    parts = {
        "constraints": [{**CONSTRAINT, "contextName": "userId", "values": [str(number) for number in range(10, 20)]}]
    }
    segment = world.server.admin("/segments", {"name": "some-users", **parts})
    payload = {"type": "json", "value": '{"colour": "grün"}'}
    variants = [
        {"name": name, "weight": 500, "weightType": "variable", "stickiness": "userId", "payload": payload}
        for name in ("a", "b")
    ]
    world.make("half", rollout(50, "half"))
    world.make("web-only", rollout(100, "web", constraints=[CONSTRAINT]))
    world.make("in-segment", rollout(100, "segment", segments=[segment["id"]]))
    world.make("with-variants", rollout(100, "variants", variants=variants))
    world.make("with-variants-for-some", rollout(50, "own", variants=variants), rollout(100, "rest"))
    world.make("child", rollout(100, "child"))
    world.server.admin(f"{FEATURES}/child/dependencies", {"feature": "half"})
    world.make(
        "by-list", rollout(100, "list", constraints=[{**CONSTRAINT, "contextName": "userId", "values": ["1", "3"]}])
    )
    world.make("last")


def answers(proxy: processes.Proxy, path: str) -> list[dict[str, Any]]:
    """Return a list answer in the specification's shape, without the state that the reference adds to variants."""
    found = proxy.get(path).json()["toggles"]
    return [
        {**each, "variant": {key: value for key, value in each["variant"].items() if "eature" not in key}}
        for each in found
    ]


@pytest.mark.parametrize("path", ["", "/all"])
def test_both_proxies_give_the_same_answers(world: World, path: str) -> None:
    """For every context, list and variants are those of the reference proxy."""
    seen = [answers(world.ours, path + context) for context in CONTEXTS]
    assert seen == [answers(world.reference, path + context) for context in CONTEXTS]
    assert len({str(each) for each in seen}) > 10


def test_flags_are_evaluated(world: World) -> None:
    """Flags that were created over the admin API are evaluated as configured."""
    web, mobile = world.ours.toggles("?userId=12&appName=web"), world.ours.toggles("?userId=3&appName=mobile")
    assert {"web-only", "in-segment", "last"} <= set(web)
    assert {"by-list", "last"} <= set(mobile)
    assert not {"web-only", "in-segment"} & set(mobile)
    assert web["with-variants"]["variant"]["payload"] == {"type": "json", "value": '{"colour": "grün"}'}


def test_a_change_arrives(world: World) -> None:
    """A feature switched off, and one made later, reach our proxy."""
    place = f"{FEATURES}/last/environments/development"
    world.server.admin(f"{place}/off", {})
    world.ours.program.wait(lambda: "last" not in world.ours.toggles("?userId=1"), "told that `last` is off", 20)
    world.server.admin(f"{place}/on", {})
    world.ours.program.wait(lambda: "last" in world.ours.toggles("?userId=1"), "told that `last` is on", 20)
    world.make("later")
    world.see("later")
    world.server.admin(f"{FEATURES}/later", method="DELETE")
    world.see("later", there=False)


def test_usage_shows_in_the_admin_api(world: World) -> None:
    """Named look-ups at our proxy are counted upstream under the proxy's name, yes and no apart."""
    for user in ("1", "3", "4"):
        world.ours.post("", {"toggles": ["by-list"], "context": {"userId": user}})
    world.server.program.wait(lambda: usage(world, "by-list") == (2, 1), "told of the usage", 60)


def usage(world: World, name: str) -> tuple[int, int]:
    """Return the flag server's counts of a feature through our proxy: yes, no."""
    rows = world.server.admin(f"/client-metrics/features/{name}/raw")["data"]
    own = [row for row in rows if (row["appName"], row["environment"]) == ("proxy-under-test", "development")]
    return sum(row["yes"] for row in own), sum(row["no"] for row in own)


def test_our_registration_is_in_the_list_of_applications(world: World) -> None:
    """The flag server lists our proxy as an application, with the built-in strategies."""
    world.server.program.wait(lambda: application(world), "told of our proxy", 60)
    assert set(application(world)["strategies"]) >= {"default", "flexibleRollout", "userWithId", "remoteAddress"}


def application(world: World) -> dict[str, Any]:
    """Return the flag server's data about our proxy; empty if it has none."""
    found = world.server.admin("/metrics/applications")["applications"]
    return next((each for each in found if each["appName"] == "proxy-under-test"), {})
