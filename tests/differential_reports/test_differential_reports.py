"""Odd reports of SDKs beside both real servers and the reference: what one of them takes, we take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from report_cases import START, doubled, sample, single
from report_compare import EXCLUSIONS, Comparison
from report_peers import CLIENT, METRICS, OUR_PROXY, OUR_SERVER, PROXY, REAL, Peer, all_peers, ask_all

from support import processes
from support.flagservers import ADMIN_SECRET
from support.waiting import wait_until

SEED, CASES, PAIRS = "reports", 300, 3000
COUNTED: dict[str, tuple[Any, int]] = {
    "a-number": (5, 5),
    "a-text": ("5", 5),
    "an-exponent": ("1e1", 10),
    "a-point": (5.0, 5),
    "true": (True, 1),
    "null": (None, 0),
    "blank": (" ", 0),
    "the-largest": (2**53 - 1, 2**53 - 1),
}
"""Flag → what is reported as its `yes`, and what that counts."""
LOOKED_UP = "looked-up"
SAMPLE = {"yes": 1, "no": 0, "variants": {"blue": 1}}


@pytest.fixture(scope="module")
def peers() -> Iterator[dict[str, Peer]]:
    """Give all peers, with the flags that are counted.

    The flags come before any report: a real server knows the names of flags for some seconds, and loses counts of newer flags.
    """
    with all_peers() as found:
        for name in (OUR_SERVER, *REAL):
            for flag in (LOOKED_UP, *COUNTED):
                admin(found[name], "/projects/default/features", {"name": flag, "type": "release"})
        yield found


def admin(peer: Peer, path: str, body: object = None) -> Any:
    """Call the admin API of a flag server."""
    key = ADMIN_SECRET if peer.name == OUR_SERVER else processes.ADMIN_TOKEN
    method = "GET" if body is None else "POST"
    answer = processes.ask(f"{peer.root}/api/admin{path}", method=method, body=body, headers={"Authorization": key})
    assert answer.status < 300, (path, answer.status, answer.text)
    return answer.json() if answer.body else None


def counted(peer: Peer) -> dict[str, int]:
    """Return how often each flag was on, as a flag server stores it."""
    rows = {name: admin(peer, f"/client-metrics/features/{name}/raw")["data"] for name in COUNTED}
    return {name: sum(int(row["yes"]) for row in found) for name, found in rows.items()}


def test_our_proxy_is_known_to_its_upstream(peers: dict[str, Peer]) -> None:
    """Its look-ups are counted there, yes and no apart, and it is an application with the built-in strategies.

    This comes before odd counts: a real server loses what it stores together with a report that its database refuses.
    """
    upstream, proxy = peers[REAL[0]], peers[OUR_PROXY]
    headers = {"Authorization": proxy.key(PROXY)}
    flag = f"/projects/default/features/{LOOKED_UP}/environments/development"
    some = {"contextName": "userId", "operator": "IN", "values": ["1", "3"]}
    admin(upstream, f"{flag}/strategies", {"name": "default", "constraints": [some]})
    admin(upstream, f"{flag}/on", {})
    wait_until(lambda: LOOKED_UP in processes.ask(f"{proxy.root}/proxy?userId=1", headers=headers).text, 30)
    for user in ("1", "3", "4"):
        body = {"toggles": [LOOKED_UP], "context": {"userId": user}}
        assert processes.ask(f"{proxy.root}/proxy", method="POST", headers=headers, body=body).status == 200

    def counts() -> set[tuple[int, int]]:
        rows = admin(upstream, f"/client-metrics/features/{LOOKED_UP}/raw")["data"]
        return {(row["yes"], row["no"]) for row in rows if row["appName"] == "proxy-under-test" and row["yes"]}

    wait_until(lambda: counts() == {(2, 1)}, 60, lambda: f"counted {counts()}")
    listed = {row["appName"]: row for row in admin(upstream, "/metrics/applications")["applications"]}
    built_in = {"default", "flexibleRollout", "userWithId", "remoteAddress"}
    assert set(listed["proxy-under-test"]["strategies"]) >= built_in


def test_counts_are_those_of_the_real_servers(peers: dict[str, Peer]) -> None:
    """Whatever stands for a number counts the same. What our proxy counts of its callers, its upstream takes from it.

    This comes before the odd reports, for the same reason.
    """
    named = [OUR_SERVER, *REAL]
    wait_until(lambda: set(COUNTED) <= served(peers[OUR_PROXY]), 30)
    toggles = {name: {**SAMPLE, "no": 1, "yes": value} for name, (value, _) in COUNTED.items()}
    body = {"appName": "shop", "bucket": {"start": START, "stop": int(time.time() * 1000), "toggles": toggles}}
    for name in named:
        assert send(peers[name], body) == 202
    wanted = {name: number for name, (_, number) in COUNTED.items()}
    for name in named:
        wait_until(lambda name=name: counted(peers[name]) == wanted, 60, lambda name=name: f"{name}: {counted(peers[name])}")  # type: ignore[misc]
    few = {name: counts for name, counts in toggles.items() if name != "the-largest"}
    body["bucket"] = {"start": 5, "stop": str(int(time.time())), "toggles": {**few, "a-number": None}}
    assert send(peers[OUR_PROXY], body) == 202
    doubled = {name: number * (2 if name in few and name != "a-number" else 1) for name, number in wanted.items()}
    wait_until(lambda: counted(peers[REAL[0]]) == doubled, 60)


@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_a_peer_takes_is_taken(peers: dict[str, Peer], every: bool, record_property: Callable[[str, object], None]) -> None:
    """Statuses are alike: taken if one of the peers takes it. What differs on purpose is a row of the table.

    With each report that has one odd value, and many that have two, each row changes something.
    """
    cases = [*single(), *doubled(SEED, PAIRS)] if every else sample(SEED, CASES)
    compared = Comparison(cases, ask_all(peers, cases))
    record_property("summary", "; ".join(compared.lines()))
    assert compared.compared > 3 * len(cases)
    assert list(map(str, compared.differences)) == []
    assert not every or set(compared.excluded) == {row.name for row in EXCLUSIONS}


def send(peer: Peer, body: object) -> int:
    """Send a report as a server-side application does, and return the status."""
    path = CLIENT + METRICS
    headers = {"Authorization": peer.key(path)}
    return processes.ask(peer.root + path, method="POST", body=body, headers=headers).status


def served(peer: Peer) -> set[str]:
    """Return the names of the flags that a proxy has."""
    answer = processes.ask(f"{peer.root}{CLIENT}/features", headers={"Authorization": peer.key(CLIENT)})
    return {flag["name"] for flag in answer.json()["features"]} if answer.status == 200 else set()
