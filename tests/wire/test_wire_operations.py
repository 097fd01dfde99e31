"""Metrics endpoint, documentation, enrichers and what is logged (behaviour: Metrics endpoint; Order of checks)."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urljoin

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flagsvc.core.version import VERSION, engine_form
from flagsvc.engine.context import Context
from flagsvc.engine.fragments import AnswerPieces, AnswerShape
from flagsvc.engine.run import STRATEGY, TOGGLE, Fault
from support.serving import FakeSnapshot
from support.wirekit import DOCUMENT, TOKEN, Opener, asking

PROMETHEUS = "/proxy/internal-backstage/prometheus"
TYPES = {"js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8", "json": "application/json; charset=utf-8"}


def test_the_text_is_prometheus(opened: Opener) -> None:
    """A parser reads the text; every metric has help and type, and none is there twice."""
    wire = opened()
    wire.get("/proxy")
    answer = wire.get(PROMETHEUS)
    assert (answer.header("content-type") or "").startswith("text/plain; version=0.0.4")
    families = list(text_string_to_metric_families(answer.body.decode()))
    names = [family.name for family in families]
    assert len(names) == len(set(names))
    assert all(family.documentation and family.type != "unknown" for family in families)
    assert {"process_cpu_seconds", "flagsvc_http_requests", "flagsvc_config_age_seconds"} <= set(names)


def test_other_metrics(opened: Opener) -> None:
    """Version, state, age and revision of the configuration, malformed toggles, polls, requests by route, method and status."""
    wire = opened(document={"version": 2, "features": [*DOCUMENT["features"], {"name": None}, {"name": 5}]})
    wire.holder.confirm(wire.clock)
    wire.holder.state = "fresh"
    wire.pass_s(2.5)
    wire.get("/proxy?userId=secret-user")
    wire.get("/proxy", key="wrong")
    wire.get("/nowhere-at-all")
    wire.ask("PATCH", "/proxy")
    for method in ("PROPFIND", "SEARCH"):
        wire.ask(method, "/nowhere-at-all")
    wire.ask("OPTIONS", "/proxy")
    assert wire.holder.current is not None
    lines = wire.get(PROMETHEUS).body.decode().splitlines()
    for line in (
        f'flagsvc_build_info{{engine="{engine_form()}",version="{VERSION}"}} 1.0',
        "flagsvc_config_problems 1.0",
        "flagsvc_config_odd_values 1.0",
        "flagsvc_config_age_seconds 2.5",
        "flagsvc_config_last_success_timestamp_seconds 1.75e+09",
        f'flagsvc_config_info{{revision="{wire.holder.current.revision}"}} 1.0',
        "flagsvc_upstream_consecutive_failures 0.0",
        'flagsvc_upstream_answers_total{event="refused"} 0.0',
        'flagsvc_config_state{state="fresh"} 1.0',
        'flagsvc_config_state{state="stale"} 0.0',
        'flagsvc_http_requests_total{method="GET",route="/proxy",status="200"} 1.0',
        'flagsvc_http_requests_total{method="GET",route="/proxy",status="401"} 1.0',
        'flagsvc_http_requests_total{method="GET",route="unmatched",status="404"} 1.0',
        'flagsvc_http_requests_total{method="PATCH",route="unmatched",status="405"} 1.0',
        'flagsvc_http_requests_total{method="other",route="unmatched",status="404"} 2.0',
        'flagsvc_http_requests_total{method="OPTIONS",route="any",status="204"} 1.0',
    ):
        assert line in lines


def test_labels_are_bounded(opened: Opener) -> None:
    """However many different paths, methods and keys are sent, there are the same lines for all."""
    wire = opened()
    wire.ask("M", "/path", key="key")
    before = [wire.get(PROMETHEUS) for _ in range(2)][-1].body.splitlines()
    for number in range(50):
        wire.ask(f"M{number}", f"/path-{number}", key=f"key-{number}")
    text = wire.get(PROMETHEUS).body.decode()
    assert len(text.splitlines()) <= len(before) + 2
    assert not re.search("path-|key-|M1", text)


def test_the_page_and_its_files(opened: Opener) -> None:
    """The page loads only our own files, under a policy that allows nothing else; it has no inline script or style."""
    wire = opened(enable_oas=True)
    page = wire.get("/docs/openapi", key=None)
    policy = page.header("content-security-policy") or ""
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    text = page.body.decode()
    assert not re.search("<script>|<style|style=|onload|//", text)
    links = re.findall('(?:src|href)="([^"]+)"', text)
    assert len(links) >= 5
    for link in [link for link in links if not link.startswith("data:")]:
        answer = wire.get(f"/docs/{link}", key=None)
        assert answer.status == 200
        assert answer.header("content-type") == TYPES[link.rpartition(".")[2]]


@pytest.mark.parametrize("path", ["/docs/openapi", "/docs/openapi/"])
@pytest.mark.parametrize("base", ["", "/base/path"])
def test_the_links_of_the_page_hold_everywhere(over_asgi: Opener, path: str, base: str) -> None:
    """With a slash at the end, a base path and a mount: every link leads to a file."""
    wire = over_asgi(enable_oas=True, base_path=base)
    text = wire.get(base + path, key=None, root="/mounted").body.decode()
    links = re.findall('(?:src|href|data-document)="([^"]+)"', text)
    for link in [link for link in links if not link.startswith("data:")]:
        target = urljoin(f"http://host/mounted{base}{path}", link).removeprefix("http://host/mounted")
        assert wire.get(target, key=None, root="/mounted").status == 200


@pytest.mark.parametrize(("root", "servers"), [("", None), ("/flags", [{"url": "/flags"}])])
def test_the_document_says_where_it_is_mounted(over_asgi: Opener, root: str, servers: object) -> None:
    """Its paths start at the mount, and have the base path in them."""
    wire = over_asgi(enable_oas=True, base_path="/base")
    document = wire.get("/base/docs/openapi.json", root=root).json()
    assert document.get("servers") == servers
    assert "/base/proxy" in document["paths"]


async def later(context: Context) -> Context:
    """Enrich after a turn of the loop."""
    await asyncio.sleep(0)
    return context.replace(properties={**context.properties, "later": context.properties["first"] + "2"})


def first(context: Context) -> Context:
    """Enrich at once."""
    return context.replace(properties={**context.properties, "first": f"{context.user_id}1"})


def test_enrichers(opened: Opener) -> None:
    """Plain and async enrichers run in their order, before the evaluation: GET, POST and named."""
    document = {"version": 2, "features": [asking("later", "IN", "u12")]}
    wire = opened(document=document, enrichers=(first, later), enable_all_endpoint=True)
    assert wire.get("/proxy?userId=u").names == ["asked"]
    assert wire.get("/proxy?userId=v").names == []
    asked: dict[str, Any] = {"context": {"userId": "u"}}
    for body in (asked, {**asked, "toggles": ["asked"]}):
        assert wire.post("/proxy", body).json()["toggles"][0]["enabled"] is True
    tag = wire.get("/proxy?userId=u").header("etag") or ""
    assert wire.get("/proxy?userId=u", {"if-none-match": tag}).status == 304


def test_an_enricher_sees_what_the_caller_sent(opened: Opener) -> None:
    """It sees the caller's fields, address and time; defaults and the option's environment come later."""
    seen: list[dict[str, object]] = []

    def look(context: Context) -> Context:
        seen.append({**context.as_dict(), "now": context.now})
        return context

    wire = opened(enrichers=(look,), environment="prod")
    wire.get("/proxy?userId=u")
    wire.get("/proxy?environment=dev&remoteAddress=192.0.2.9&appName=a&sessionId=s")
    always = {"properties": {}, "now": wire.clock.now() * 1000}
    sent = {"environment": "dev", "remoteAddress": "192.0.2.9", "appName": "a", "sessionId": "s"}
    assert seen == [{"userId": "u", "remoteAddress": "203.0.113.7", **always}, {**sent, **always}]


SHARED = Context(user_id="u")


@pytest.mark.parametrize(
    ("enricher", "field_name", "value"),
    [
        (lambda context: context.replace(session_id=context.session_id or "own"), "sessionId", "own"),
        (lambda context: context.replace(app_name=context.app_name or "own"), "appName", "own"),
        (lambda context: context.replace(environment="own"), "environment", "prod"),
        (lambda context: SHARED, "environment", "prod"),
        (lambda context: SHARED, "appName", "flagsvc-proxy"),
    ],
    ids=["session", "application", "environment", "no environment", "no application"],
)
def test_what_follows_the_enrichers(opened: Opener, enricher: Any, field_name: str, value: str) -> None:
    """A field that an enricher sets stays, except that the option's environment wins; a field that it removes gets its default."""
    wire = opened(document={"version": 2, "features": [asking(field_name, "IN", value)]}, enrichers=(enricher,))
    forced = opened(
        document={"version": 2, "features": [asking(field_name, "IN", value)]}, enrichers=(enricher,), environment="prod"
    )
    assert forced.get("/proxy").names == ["asked"]
    assert wire.get("/proxy").names == ([] if field_name == "environment" else ["asked"])


def test_a_context_that_an_enricher_keeps(opened: Opener) -> None:
    """The kept context does not change: the session of one answer must not become that of every other."""
    wire = opened(enrichers=(lambda context: SHARED,), environment="prod")
    wire.get("/proxy")
    assert SHARED.as_dict() == {"userId": "u", "properties": {}}
    assert SHARED.entropy == 0


def broken(context: Context) -> Context:
    """Raise, with a text that must not leave the process."""
    raise ValueError(f"no such user: {context.user_id}")


def wrong(context: Context) -> Any:
    """Return no context."""
    return None


@pytest.mark.parametrize("enricher", [broken, wrong])
def test_an_enricher_that_raises(opened: Opener, enricher: Any) -> None:
    """The answer is a 500 with CORS headers and without detail, not to be cached."""
    wire = opened(enrichers=(first, enricher))
    for _ in range(3):
        answer = wire.get("/proxy?userId=jane")
        assert answer.status == 500
        assert answer.json() == {"error": "an unexpected error occurred"}
        assert answer.header("cache-control") == "no-store"
        assert answer.header("access-control-allow-origin") == "*"
    assert [(line.level, line.fields["enricher"]) for line in wire.log.lines] == [("error", enricher.__name__)]
    assert "jane" not in str(wire.log.lines)
    wire.pass_s(61)
    wire.get("/proxy?userId=jane")
    assert len(wire.log.lines) == 2


def test_bad_requests_stay_400_with_enrichers(opened: Opener) -> None:
    """A context of the wrong shape does not reach an enricher."""
    wire = opened(enrichers=(broken,))
    assert wire.get("/proxy?properties=x").status == 400
    assert wire.log.lines == []


def test_the_unexpected(opened: Opener) -> None:
    """An unexpected exception is a 500 without detail, and a log line that names the place, not the text."""
    wire = opened()

    class Failing(FakeSnapshot):
        """A snapshot that raises."""

        def listing(self, context: Context, everything: bool, shape: AnswerShape) -> AnswerPieces:
            raise RuntimeError(f"secret {context.user_id}")

    wire.holder.current = Failing()
    answer = wire.get("/proxy?userId=jane")
    assert (answer.status, answer.json()) == (500, {"error": "an unexpected error occurred"})
    assert [(line.level, line.event) for line in wire.log.lines] == [("error", "an unexpected error")]
    assert wire.log.lines[0].fields["route"] == "/proxy"
    assert "RuntimeError at " in str(wire.log.lines[0].fields["error"])
    assert "jane" not in str(wire.log.lines)
    assert wire.get("/proxy/health").status == 200


def test_a_toggle_and_a_custom_strategy_of_one_name_are_told_apart(opened: Opener) -> None:
    """Where both fail, the log has a line for each, which names what failed."""
    wire, snapshot = opened(), FakeSnapshot()
    wire.holder.current = snapshot
    for _ in range(3):
        snapshot.memory.faults = [Fault(kind, "broken", KeyError("user-4711")) for kind in (TOGGLE, STRATEGY)]
        assert wire.get("/proxy").status == 200
    named = [{name: line.fields[name] for name in ("toggle", "strategy") if name in line.fields} for line in wire.log.lines]
    assert named == [{"toggle": "broken"}, {"strategy": "broken"}] and "4711" not in str(wire.log.lines)


def test_access_log(opened: Opener) -> None:
    """A line for each request: method, route, status, size and time, nothing about the user."""
    wire = opened(access_log=True)
    wire.get("/proxy?userId=jane", {"x-forwarded-for": "198.51.100.9", "user-agent": "Janes-Phone"})
    wire.get("/jane")
    wire.ask("DELETE", "/proxy")
    wire.get("/proxy/client/features", key=TOKEN)
    wire.ask("OPTIONS", "/jane")
    shown = [(line.fields["method"], line.fields["route"], line.fields["status"]) for line in wire.log.lines]
    assert shown == [
        ("GET", "/proxy", 200),
        ("GET", "unmatched", 404),
        ("DELETE", "unmatched", 405),
        ("GET", "/proxy/client/features", 200),
        ("OPTIONS", "any", 204),
    ]
    assert {line.level for line in wire.log.lines} == {"info"}
    assert not re.search("jane|198.51|client-key|server-token", str(wire.log.lines), re.IGNORECASE)
    assert set(wire.log.lines[0].fields) == {"method", "route", "status", "bytes", "milliseconds"}
