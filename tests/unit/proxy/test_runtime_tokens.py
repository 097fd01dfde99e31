"""A running proxy whose environments look up tokens: which of them a token opens while they come and go."""

from __future__ import annotations

from typing import Any

from flagsvc.engine.compile import compile_document
from flagsvc.http.messages import GET, Request, Response
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.configuration import ConfigurationDocument
from flagsvc.proxy.generations.feeds import UpstreamSync
from flagsvc.proxy.generations.setup import make_setup, next_setup
from flagsvc.proxy.tokens import TokenGrant, TokenScope
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import turns
from support.aio import asynchronous
from support.environments import feeds

TOKEN = "shop:development.caller"
UP = "*:development.up"


def options(**tables: dict[str, Any]) -> ProxyOptions:
    """Return options of environments of one upstream that cannot be reached."""
    tables = {name: {"flagsvc_api_token": UP, "client_keys": name, **table} for name, table in tables.items()}
    return ProxyOptions(
        flagsvc_url="http://127.0.0.1:1/api",
        token_validation="upstream",
        storage="none",
        log_level="fatal",
        environments=tables,
    )


def fill(environment: UpstreamSync, toggle: str) -> None:
    """Give an environment a configuration."""
    feature = {"name": toggle, "project": "shop", "enabled": True, "strategies": []}
    compiled = compile_document({"version": 2, "features": [feature]}, environment.setup.compile_options)
    environment.holder.replace(compiled.snapshot, ConfigurationDocument(b"{}", '"v1"'), 0)
    environment.holder.note_check(1.0)


async def ask(runtime: ProxyRuntime) -> tuple[int, str]:
    """Return the status for the token, and the body."""
    admitted = runtime.service.admit(
        Request(GET, b"/proxy", b"", [(b"authorization", TOKEN.encode())], peer="192.0.2.1")
    )
    answer = admitted if isinstance(admitted, Response) else admitted.handler.answer(admitted, b"")
    answer = answer if isinstance(answer, Response) else await answer
    return answer.status, answer.body.decode()


@asynchronous
async def test_a_narrower_environment_is_added() -> None:
    """It takes no token away from the one that works until it has a configuration, and then it takes it over."""
    runtime = ProxyRuntime(make_setup(options(wide={})))
    runtime.generations.start()
    wide = feeds(runtime)["wide"]
    fill(wide, "of-wide")
    assert wide.tokens is not None
    wide.tokens.book.add(TOKEN, TokenGrant(False, TokenScope("development", frozenset({"shop"}))), 1e12)
    status, body = await ask(runtime)
    assert status == 200 and "of-wide" in body
    runtime.generations.use(next_setup(runtime.generations.setup, options(wide={}, narrow={"project_name": "shop"})))
    for _ in range(2):
        assert await ask(runtime) == (status, body)
    fill(feeds(runtime)["narrow"], "of-narrow")
    await turns()
    status, body = await ask(runtime)
    assert status == 200 and "of-narrow" in body
    await runtime.generations.stop()
