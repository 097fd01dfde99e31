"""No answer, tag, log line, metric or request to an upstream of one environment holds anything of another one.

A random walk over environments, keys, reloads, outages, changed and empty documents, conditional requests and the cache, by a
proxy in one process and by one with workers, each of which may be killed. ISOLATION_STEPS sets the number of steps (half of them
with workers, which take longer), ISOLATION_SEEDS that of walks.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable
from random import Random

import pytest
from marked_upstreams import MARK, PROJECT, MarkedSession, MarkedUpstream, Side, Universe, random_tables
from walked_processes import AskedWorker, OneProcess, Tables, View, WithWorkers

from flagsvc.http.messages import Request, Response
from flagsvc.proxy.generations import feeds, lookups
from flagsvc.proxy.generations.setup import ProxySetup

STEPS = int(os.environ.get("ISOLATION_STEPS", "4000"))
SEEDS = range(int(os.environ.get("ISOLATION_SEEDS", "1")))
GETS = ("/proxy", "/proxy/all", "/api/frontend", "/api/frontend/all", "/api/client/features", "/proxy/client/features")
POSTS = ("/proxy", "/api/frontend", "/proxy/client/metrics", "/api/client/metrics", "/api/client/register", "/edge/validate")


WalkedProcess = OneProcess | WithWorkers


def marks_in(text: str) -> set[str]:
    return set(MARK.findall(text))


class Walk:
    """One random walk."""

    def __init__(self, seed: int, universe: Universe, make: Callable[[Tables], WalkedProcess]) -> None:
        self.random = Random(seed)
        self.universe = universe
        self.seen: Counter[str] = Counter()
        self.tags: list[bytes] = []
        self.last_tags: dict[tuple[bytes, bytes, str], bytes] = {}
        self.tables = random_tables(self.random, self.universe, {})
        self.walked = make(self.tables)

    async def run(self, steps: int) -> None:
        """Take the steps, and stop."""
        await self.walked.start()
        for _ in range(steps):
            await self.step()
        for side in self.universe.sides:
            side.fault = ""
        await self.walked.stop()
        self.check_outside()

    async def step(self) -> None:
        drawn = self.random.random()
        if drawn < 0.94:
            await self.ask()
        elif drawn < 0.96:
            await self.disturb()
        elif drawn < 0.985:
            # no wait for a condition: a step in which time passes
            await asyncio.sleep(self.random.choice((0, 0, 0, 0.001, 0.03)))
        elif drawn < 0.99:
            await self.check_metrics()
        else:
            await self.reload()

    async def reload(self) -> None:
        """Use other environments."""
        self.tables = random_tables(self.random, self.universe, self.tables)
        await self.walked.reload(self.tables)
        self.seen["reload"] += 1
        self.check_outside()

    async def disturb(self) -> None:
        """Change, empty or break an upstream, or mend it."""
        side = self.random.choice(self.universe.sides)
        side.version += 1
        side.fault = self.random.choice(("", "", "", "network", "unauthorized", "server"))
        side.is_empty = self.random.random() < 0.1
        self.universe.is_validating = self.random.random() < 0.8
        self.walked.poll_now()
        self.walked.disturb(self.random)

    # ---- requests

    def owners_of(self, key: str, views: Iterable[View]) -> set[str] | None:
        """Return the marks that may be in an answer to a key; None if the key opens nothing."""
        owners = {owner for view in views if (owner := self.owner_of(key, view)) is not None}
        return owners or None

    def owner_of(self, key: str, view: View) -> str | None:
        """Return the mark that may be in an answer to a key of some environments; None if the key opens nothing.

        While an environment is replaced, a key of both opens the former environment, and a new key opens the coming environment.
        """
        for name, table in view.tables.items():
            if key in (*table.keys, *table.tokens):
                current = view.served.get(name)
                if current is None:
                    return table.side.mark
                settings = current.service_settings
                is_in_both = key in (*settings.client_keys, *settings.server_tokens)
                return side_of(self.universe, current).mark if is_in_both else table.side.mark
        return None

    def draw_key(self) -> str:
        """Return a key: a listed one of now or before, or a token of any environment."""
        if self.random.random() < 0.5:
            return f"neutral-key-{self.random.randrange(10)}"
        return self.random.choice([token for token, _ in self.universe.tokens()])

    async def ask(self) -> None:
        """Send a request, and look for marks that do not belong into its answer."""
        key = self.draw_key()
        request, sent = self.draw_request(key)
        asked = await self.walked.draw(self.random)
        views = asked.views()
        response = await self.answer(asked, request, sent)
        views += asked.views()  # a reload may have come meanwhile
        text = response.body.decode() + repr(response.headers())
        self.seen[str(response.status)] += 1
        self.note_tags(request, key, response)
        found = marks_in(text)
        # what the caller sent may come back in an error or in a named look-up
        foreign = found - marks_in(sent.decode() + repr(request.headers) + request.query.decode())
        if request.path == b"/edge/validate":
            self.check_validated(sent, response)
            return
        allowed = self.owners_of(key, views)
        if allowed is None:
            allowed = marks_in(key) if response.status in (200, 304) else set()
            assert response.status != 200 or marks_in(key), f"{key} opened something"
        self.seen["opened"] += response.status == 200 and bool(marks_in(key))
        assert foreign <= allowed, f"{request.method!r} {request.path!r} with {key}: {foreign} beside {allowed}\n{text}"

    def draw_request(self, key: str) -> tuple[Request, bytes]:
        """Return a request with its body."""
        headers = [(b"authorization", self.random.choice((b"", b"Bearer ")) + key.encode())]
        if self.random.random() < 0.2:
            headers.append((b"origin", f"https://{self.random.choice(self.universe.sides).mark}.example".encode()))
        query = self.random.choice((b"userId=7", b"region=eu"))
        if self.random.random() < 0.6:
            path = self.random.choice(GETS).encode()
            if self.tags and self.random.random() < 0.6:
                last = self.last_tags.get((path, query, key)) if self.random.random() < 0.5 else None
                headers.append((b"if-none-match", last or self.random.choice(self.tags)))
            return Request(b"GET", path, query, headers), b""
        target = self.random.choice(POSTS)
        body = self.draw_body(target)
        headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        return Request(b"POST", target.encode(), b"", headers), body

    def draw_body(self, path: str) -> bytes:
        """Return a body for a path."""
        side = self.random.choice(self.universe.sides)
        if path == "/edge/validate":
            tokens = [token for token, _ in self.universe.tokens()] + [f"neutral-key-{at}" for at in range(10)]
            return json.dumps({"tokens": self.random.sample(tokens, 4)}).encode()
        if path.endswith("/register"):
            started = {"strategies": [], "started": "2026-01-01T00:00:00Z", "interval": 1}
            return json.dumps({"appName": "app", "instanceId": "i", **started}).encode()
        if path.endswith("/metrics"):
            toggles = {f"{side.mark}-flag-{at}": {"yes": 1, "no": 0, "variants": {f"{side.mark}-v": 1}} for at in (0, 1)}
            bucket = {"start": "2026-01-01T00:00:00Z", "stop": "2026-01-01T00:00:01Z", "toggles": toggles}
            return json.dumps({"appName": "app", "instanceId": "i", "bucket": bucket}).encode()
        names = [f"{side.mark}-flag-{at}" for at in range(self.random.randint(0, 2))]
        return json.dumps({"context": {"userId": "7", "properties": {"region": "eu"}}, "toggles": names}).encode()

    async def answer(self, asked: OneProcess | AskedWorker, request: Request, body: bytes) -> Response:
        admitted = asked.contract.admit(request)
        if isinstance(admitted, Response):
            return admitted
        answer = admitted.handler.answer(admitted, body if admitted.limit else b"")
        return answer if isinstance(answer, Response) else await answer

    def note_tags(self, request: Request, key: str, response: Response) -> None:
        """Keep an entity tag for later requests, with this key and with any."""
        for name, value in response.headers():
            if name == b"etag":
                self.tags = [*self.tags[-60:], value]
                self.last_tags[request.path, request.query, key] = value

    def check_validated(self, sent: bytes, response: Response) -> None:
        """What is told about a key is what the key itself opens."""
        if response.status != 200:
            return
        for told in json.loads(response.body)["tokens"]:
            self.seen["validated"] += 1
            own = marks_in(told["token"])
            assert marks_in(json.dumps(told)) <= own
            assert own or told["token"].startswith("neutral")

    # ---- everything else that leaves the process

    async def check_metrics(self) -> None:
        """Metrics have no name of a flag, a token or a project."""
        text = await self.walked.metrics()
        assert not marks_in(text)
        labels = {line.split('environment="')[1].split('"')[0] for line in text.splitlines() if 'environment="' in line}
        assert labels <= {"", *self.tables}
        self.seen["metrics"] += 1

    def check_outside(self) -> None:
        """An upstream was sent nothing of another environment, and no log line or stored record mixes two."""
        for mark, text in self.universe.sent:
            if mark.startswith("url "):
                asked = {side.url for token, side in self.universe.tokens() if token == text}
                named = text.partition(":")[2].partition(".")[0]
                assert asked <= {side.url for side in self.universe.sides if side.name == named}, text
            else:
                assert marks_in(text) <= {mark}, f"{mark} was sent {text}"
        self.universe.sent.clear()
        for line in self.walked.log.lines:
            shown = marks_in(f"{line.event} {line.fields}")
            assert len(shown) <= 1, line
            assert "-front" not in str(line.fields), line
            assert "-back" not in str(line.fields), line
        self.seen["lines"] += len(self.walked.log.lines)
        self.walked.log.lines.clear()
        for data in self.walked.store.data.values():
            self.check_record(data.decode("utf-8", "replace"))
        self.seen["records"] = len(self.walked.store.data)

    def check_record(self, text: str) -> None:
        """A record is of one environment. One of tokens is of one upstream: it has only digests, and names of projects."""
        assert len(marks_in(PROJECT.sub("", text))) <= 1
        assert len({mark[:-2] for mark in marks_in(text)}) <= 1
        assert "-front" not in text.replace("-flag", "")


def side_of(universe: Universe, setup: ProxySetup) -> Side:
    """Return the side that an environment serves now."""
    return universe.side_of(setup.options.flagsvc_url, setup.options.flagsvc_api_token)


@pytest.mark.parametrize("kind", [OneProcess, WithWorkers])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_crosses_from_one_environment_to_another(
    seed: int, kind: type[WalkedProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In any order of events, what leaves the proxy has only the marks of the environment that it is for."""
    universe = Universe()

    def make_upstream(setup: ProxySetup) -> MarkedUpstream:
        return MarkedUpstream(universe, feeds.make_upstream_settings(setup))

    def make_session(setup: ProxySetup) -> MarkedSession:
        return MarkedSession(universe, setup.options.flagsvc_url)

    monkeypatch.setattr(feeds, "make_upstream", make_upstream)
    monkeypatch.setattr(lookups, "make_session", make_session)

    async def main() -> Counter[str]:
        walk = Walk(seed, universe, lambda tables: kind(tables, monkeypatch))
        await walk.run(STEPS // 2 if kind is WithWorkers else STEPS)
        return walk.seen

    seen = asyncio.run(main())
    print(dict(seen))
    for what in ("200", "304", "401", "403", "503", "reload", "metrics", "validated", "opened", "lines", "records"):
        assert seen[what], f"the walk never met {what}"
