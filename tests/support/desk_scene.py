"""A proxy whose operators' address has pages, without sockets: documents are served directly, and requests go to the contract."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from flagsvc.engine.compile import compile_document
from flagsvc.http.messages import Request, Response
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.configuration import ConfigurationDocument, State
from flagsvc.proxy.generations.feeds import UpstreamSync
from flagsvc.proxy.generations.setup import make_setup
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import Resolved
from flagsvc.testing import FakeClock
from support.apps_options import options
from support.environments import feeds, only
from support.evaluating import constraint, feature, strategy

LOCAL = "127.0.0.1:9090"
ELSEWHERE = "10.0.0.5:9090"
KEY = "a-key-of-the-pages"
HOSTILE = "<script>alert(1)</script>"
CHECKOUT = [
    strategy(
        "flexibleRollout",
        constraint("IN", "plan", values=["team"]),
        title="EU beta",
        parameters={"rollout": "25", "stickiness": "userId", "groupId": "new-checkout"},
        segments=[1],
    ),
    {"name": "userWithId", "parameters": {"userIds": "7"}},
]
BLUE_AND_GREEN = [{"name": name, "weight": 500, "stickiness": "userId"} for name in ("blue", "green")]
TOLD = {"type": "release", "description": "buy <b>more</b>", "impressionData": 0}
DEFAULT = {"name": "default"}
DOCUMENT = {
    "version": 2,
    "features": [
        feature("new-checkout", *CHECKOUT, variants=BLUE_AND_GREEN, **TOLD),
        feature("child", DEFAULT, dependencies=[{"feature": "new-checkout"}]),
        feature("off", DEFAULT) | {"enabled": False},
        feature("everyone"),
        feature(HOSTILE, {"name": "userWithId", "parameters": {"userIds": HOSTILE}}),
        feature("a/b c?d.json", DEFAULT),
        feature("", DEFAULT),
    ],
    "segments": [{"id": 1, "name": "beta", "constraints": [constraint("IN", values=["eu"])]}],
}


class DeskScene:
    """The pages of a proxy. `clock` is a fake one."""

    def __init__(self, address: str = LOCAL, *, document: Any = DOCUMENT, resolved: Resolved | None = None, **given: Any) -> None:
        """Serve a document in each environment; none if it is None."""
        self.clock = FakeClock()
        chosen = {"storage": "none", "log_level": "fatal", "admin_address": address, **given}
        made = ProxyOptions(flagsvc_url="file:///f.json", **chosen) if "environments" in given else options(**chosen)
        setup = make_setup(made, resolved=resolved)
        parts = tuple(replace(each, clock=self.clock) for each in setup.environments)
        self.runtime = ProxyRuntime(replace(setup, clock=self.clock, environments=parts))
        self.desk = self.runtime.desk
        for each in feeds(self.runtime).values():
            if document is not None:
                serve(each, document)

    @property
    def only(self) -> UpstreamSync:
        """The upstream side of a process with a single environment."""
        return only(self.runtime)

    async def ask(
        self, target: str, method: str = "GET", form: Mapping[str, str] | None = None, host: str = LOCAL, **headers: str
    ) -> Response:
        """Return the answer to a request for `target`, a path with a query."""
        path, _, query = target.partition("?")
        body = b"" if form is None else urlencode(form).encode()
        pairs = [(b"host", host.encode())]
        pairs += [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
        if form is not None and "content_type" not in headers:
            pairs.append((b"content-type", b"application/x-www-form-urlencoded"))
        if form is not None:
            pairs.append((b"content-length", b"%d" % len(body)))
        request = Request(method.encode(), path.encode(), query.encode(), pairs, peer="192.0.2.1")
        admitted = self.desk.admit(request)
        if isinstance(admitted, Response):
            return admitted
        answer = admitted.handler.answer(admitted, body)
        return answer if isinstance(answer, Response) else await answer

    async def text(self, target: str, **more: Any) -> str:
        """Return the page at a path; it must be there."""
        found = await self.ask(target, **more)
        assert found.status == 200, (found.status, found.body)
        return found.body.decode()

    async def data(self, target: str, **more: Any) -> Any:
        """Return the data of a page; it must be there."""
        return json.loads(await self.text(target, **more))


def serve(environment: UpstreamSync, document: Any) -> None:
    """Serve a document as if the upstream had sent it."""
    compiled = compile_document(document, environment.setup.compile_options)
    body = json.dumps(document).encode()
    left_out, odd = ([str(each) for each in compiled.problems if each.served is kind] for kind in (False, True))
    served = ConfigurationDocument(body, '"digest"')
    environment.holder.replace(compiled.snapshot, served, len(left_out), len(odd))
    environment.holder.set_state(State.FRESH)
    environment.poller.notes.left_out, environment.poller.notes.odd = left_out, odd


def header(answer: Response, name: str) -> str | None:
    return next((value.decode() for key, value in answer.headers() if key.decode() == name), None)
