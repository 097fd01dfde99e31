"""A whole proxy in process, of `flagsvc.create_app`, for fuzz tests: any bytes go in, every answer that comes out is checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from flagsvc import ProxyApp, ProxyOptions, create_app
from flagsvc.testing import RecordingLog
from fuzzing.answers import Got, Sent, check, check_unready
from support.wirekit import PendingRequest, call

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "examples" / "document.json"
KEY, TOKEN = b"client-key", b"server-token"

WORLDS: dict[str, dict[str, Any]] = {
    "plain": {"enable_oas": True, "enable_all_endpoint": True, "ofrep": True},
    "all options": {
        "proxy_base_path": "some/base",
        "trust_proxy": "loopback, 203.0.113.0/24, fe80::/10",
        "cors_origin": "https://app.example.com, https://*.example.org",
        "cors_credentials": True,
        "cors_preflight_continue": True,
        "client_keys_header_name": "x-key",
        "environment": "production",
        "variant_feature_state": True,
        "hash_encoding": "utf8",
        "exp_custom_enrichers": str(ROOT / "examples" / "enrichers.py"),
        "access_log": True,
        "impact_metrics": "on, Ω",
        "context_properties_limit": 100_000,
        "context_value_limit": 100_000,
        "toggle_limit": 100_000,
        "json_depth_limit": 100,
    },
}
"""Options of the proxies that requests are thrown at: few, and many."""


class Fuzzed:
    """A running proxy to throw things at. `origin` and `base` are what its options make of every answer and path."""

    def __init__(self, runner: asyncio.Runner, app: ProxyApp, log: RecordingLog) -> None:
        self._runner = runner
        self._app = app
        self._log = log
        options = app.options
        self.base: str = options.proxy_base_path
        self.key_header = options.client_keys_header_name.encode()
        self._origin = options.cors_origin if isinstance(options.cors_origin, str) else None
        self._repeats_state: bool = options.variant_feature_state
        self._never_ready = False

    def ask(self, sent: Sent) -> Got:
        """Return the answer to a request, after checking what holds of any answer, and that nothing went wrong inside."""
        got = self._runner.run(answer(self._app, sent))
        faults = [line for line in self._log.lines if line.level in ("error", "fatal")]
        self._log.lines.clear()
        assert not faults, faults
        if self._never_ready:
            check_unready(sent, got)
        else:
            check(sent, got, origin=self._origin, base=self.base, repeats_state=self._repeats_state)
        return got

    def expect_nothing(self) -> None:
        """Note that there will never be a configuration: every answer has to be an answer before the first configuration."""
        self._never_ready = True

    def keyed(self, sent: Sent, key: bytes = KEY) -> Sent:
        """Return the request below the base path with a key in front of its headers."""
        headers = ((self.key_header, key), *sent.headers)
        return Sent(sent.method, self.base.encode() + sent.path, sent.query, headers, sent.body)

    def ready(self) -> bool:
        return self.ask(self.keyed(Sent(path=b"/proxy/health"))).status == 200


@contextmanager
def fuzzed(**given: Any) -> Iterator[Fuzzed]:
    """Run a proxy over the example document with these options until the block ends."""
    with running(flagsvc_url=DOCUMENT.as_uri(), **given) as (runner, app, log):
        runner.run(app.ready(20))
        log.lines.clear()
        yield Fuzzed(runner, app, log)


@contextmanager
def unready() -> Iterator[Fuzzed]:
    """Run a proxy that waits for its first document until the block ends."""
    with running(flagsvc_url=DOCUMENT.with_name("no-such-document.json").as_uri()) as (runner, app, log):
        proxy = Fuzzed(runner, app, log)
        proxy.expect_nothing()
        yield proxy


@contextmanager
def running(**given: Any) -> Iterator[tuple[asyncio.Runner, ProxyApp, RecordingLog]]:
    """Run an application and what it is driven with."""
    log = RecordingLog()
    usual = {
        "flagsvc_api_token": "some-token",
        "client_keys": KEY.decode(),
        "exp_server_side_sdk_config_tokens": TOKEN.decode(),
        "custom_strategies": str(ROOT / "examples" / "custom_strategies.py"),
        "logger": log,
    }
    with asyncio.Runner() as runner:
        app = create_app(ProxyOptions(**usual | given))  # type: ignore[arg-type]
        runner.run(app.start())
        try:
            yield runner, app, log
        finally:
            runner.run(app.aclose())


async def answer(app: ProxyApp, sent: Sent) -> Got:
    """Play an ASGI server for one request; it checks that the application keeps ASGI's rules."""
    target = (sent.path + b"?" + sent.query).decode("latin-1")
    headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in sent.headers]
    got = await call(app, PendingRequest(sent.method, target, headers, sent.body))
    return Got(got.status, [(name.encode("latin-1"), value.encode("latin-1")) for name, value in got.fields], got.body)
