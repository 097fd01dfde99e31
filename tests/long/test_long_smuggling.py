"""Victims and attackers on the same kept connections: each of at least 100,000 answers to victims is their own.

`make test-long`; VICTIMS=100000 is the number of answers to victims. The counts are printed with `-s`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.flagservers import USER_SECRET
from support.frontframing import LAST, REFUSED, TAKEN, TOO_LARGE
from support.smuggling import BALANCERS, PROXIES, SERVERS

WANTED = int(os.environ.get("VICTIMS", "100000"))
CALLERS, ATTACKERS = 4, 2
SECONDS = 10.0
NAMES = [f"victim-{number}" for number in range(CALLERS)]


@dataclass(frozen=True)
class Target:
    """A program behind a balancer: what a victim asks for, with which key, and how an attack names its paths."""

    health: str
    question: Callable[[str], str]
    key: str
    own: Callable[[bytes], str | None]
    hidden: str
    path: bytes
    attacker_key: bytes


def own_toggle(body: bytes) -> str | None:
    """Return for whom an answer of the proxy is."""
    names = [each["name"] for each in json.loads(body)["toggles"]]
    return names[0] if len(names) == 1 else None


def own_kind(body: bytes) -> str | None:
    """Return for whom an answer of the flag server is."""
    name = json.loads(body)["tagType"]["name"]
    return name if isinstance(name, str) else None


PROXY = Target(
    "/proxy/health",
    lambda name: f"/proxy?userId={name}",
    "client-key",
    own_toggle,
    "GET /proxy/nowhere",
    b"/proxy",
    b"client-key",
)
SERVER = Target(
    "/health",
    lambda name: f"/api/admin/tag-types/{name}",
    USER_SECRET,
    own_kind,
    "DELETE /api/admin/tag-types/victim-0",
    b"/api/admin/projects",
    b"nobodys-token",
)


def flags() -> dict[str, Any]:
    """Return a document with one toggle for each victim."""
    features = [
        {"name": name, "enabled": True, "strategies": [{"name": "userWithId", "parameters": {"userIds": name}}]} for name in NAMES
    ]
    return {"version": 2, "features": features}


TAG_TYPES = {"tagTypes": [{"name": name, "description": "of a victim"} for name in NAMES]}
PROGRAMS = [*PROXIES, *SERVERS]


def attacks(target: Target) -> list[bytes]:
    """Return the streams of an attacker, each with a request hidden behind it or in its body."""
    hidden = f"{target.hidden} HTTP/1.1\r\nHost: a\r\nX-Rest: ".encode()
    found = []
    for stream in (*REFUSED.values(), *TAKEN.values(), *LAST.values(), *TOO_LARGE.values()):
        spoken = stream.replace(b"/proxy/health", target.path).replace(b"/proxy", target.path)
        found.append(spoken.replace(b"client-key", target.attacker_key) + hidden)
    for filling in (b"\r\n\r\n", b"\r\n" * 40_000):
        for fields in (
            b"Connection: upgrade\r\nUpgrade: websocket\r\n",
            b"Connection: Upgrade\r\nUpgrade: h2c\r\n",
            b"",
        ):
            body = filling + hidden
            length = f"Content-Length: {len(body)}\r\n\r\n".encode()
            found.append(b"POST " + target.path + b" HTTP/1.1\r\nHost: a\r\n" + fields + length + body)
    return found


@dataclass
class Count:
    """What happened: answers to victims, foreign ones among them, and attacks."""

    answers: int = 0
    foreign: list[Any] = field(default_factory=list)
    lost: int = 0
    attacks: int = 0
    over: threading.Event = field(default_factory=threading.Event)


def ask_on(port: int, name: str, target: Target, count: Count, wanted: int) -> None:
    """Send requests as a victim until all victims together have so many answers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    while count.answers < wanted and not count.foreign:
        try:
            connection.request("GET", target.question(name), headers={"Authorization": target.key})
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException):
            connection.close()
            count.lost += 1
            continue
        if response.status in (502, 503, 504):  # the balancer's own: the connection behind it was closed
            count.lost += 1
            continue
        count.answers += 1
        if response.status != 200 or target.own(body) != name:
            count.foreign.append((name, response.status, body[:200]))
    connection.close()
    count.over.set()


def attack_on(port: int, streams: list[bytes], count: Count, draw: random.Random) -> None:
    """Attack until the victims have enough answers."""
    while not count.over.is_set():
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=0.3) as caller:
            caller.sendall(draw.choice(streams))
            count.attacks += 1
            caller.recv(65_536)


@pytest.mark.long
@pytest.mark.parametrize("balancer", BALANCERS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_victim_gets_anothers_answer(name: str, balancer: str, tmp_path: Path) -> None:
    """Every answer to a victim is its own, with any bytes of attackers on the connections that the balancer shares."""
    run, target, content = (PROXIES[name], PROXY, flags()) if name in PROXIES else (SERVERS[name], SERVER, TAG_TYPES)
    count, draw = Count(), random.Random(name + balancer)
    wanted = WANTED // (len(PROGRAMS) * len(BALANCERS)) + 1
    with run(tmp_path, content) as behind, BALANCERS[balancer](behind, target.health) as port:
        victims = [threading.Thread(target=ask_on, args=(port, each, target, count, wanted)) for each in NAMES]
        streams = attacks(target)
        attackers = [threading.Thread(target=attack_on, args=(port, streams, count, draw)) for _ in range(ATTACKERS)]
        for thread in (*victims, *attackers):
            thread.start()
        for thread in (*victims, *attackers):
            thread.join()
    print(f"\n{name}, {balancer}: {count.answers} answers to victims, {count.lost} lost, {count.attacks} attacks")
    assert count.foreign == []
    assert count.answers >= wanted and count.attacks > 0
