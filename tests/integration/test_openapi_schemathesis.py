"""schemathesis tests the proxy against our own OpenAPI document (specification: Endpoints).

The OpenAPI document over the wire: it is valid, has every route and every status (specification: GET /docs/openapi.json).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from flagsvc.proxy.api.dialects import ROUTES
from fuzzing.answers import Sent
from fuzzing.contract import UNREADY, Campaign, campaign, configured, contract
from fuzzing.proxy import Fuzzed, fuzzed

EXAMPLES = 3
LONG_EXAMPLES = 1500
FIRST, *OTHERS = "everything on", "below a base path"
WORLDS: dict[str, dict[str, Any]] = {
    FIRST: {},
    OTHERS[0]: {
        "proxy_base_path": "some/base",
        "enable_all_endpoint": False,
        "client_keys_header_name": "x-key",
        "variant_feature_state": True,
    },
}
LIVE, READY = ("/", "/proxy/live", "/livez", "/proxy/live.js", "/api/frontend/live.js"), ("/proxy/ready", "/readyz")
OPEN = (
    *LIVE,
    *READY,
    "/proxy/health",
    "/proxy/internal-backstage/prometheus",
    "/docs/openapi.json",
    "/docs/openapi",
    "/edge/validate",
)
"""What needs no key."""


def found(config: Any, **given: Any) -> Campaign:
    """Return what schemathesis saw, after checking that it found nothing wrong."""
    with contract(config, **given) as schema:
        schema.validate()
        seen = campaign(schema)
    assert not seen.wrong, "\n".join(seen.wrong[:5])
    return seen


def check_with_keys(seen: Campaign) -> None:
    """Check that the campaign got past the checks: successes on all routes, and every error that a caller can cause."""
    assert all(counts[200] + counts[202] for label, counts in seen.statuses.items() if label), seen.statuses
    assert {200, 204, 400, 401, 405, 415} <= seen.all_statuses()


@pytest.mark.parametrize("world", [FIRST, *(pytest.param(each, marks=pytest.mark.long) for each in OTHERS)])
def test_the_document_is_true(world: str) -> None:
    """No 5xx, no undocumented status or media type, no body or header that breaks its schema; keys are checked; 405 with Allow."""
    check_with_keys(found(configured(EXAMPLES), **WORLDS[world]))


@pytest.mark.long
def test_without_a_key_nothing_is_told() -> None:
    """Without a key, a route that needs one answers only with a documented 401. `test_routes_and_keys.py` asks each route once."""
    seen = found(configured(2, keys=False))
    for label, counts in seen.statuses.items():
        path = label.rpartition(" ")[2]  # requests in sequence have no label
        assert path in OPEN or set(counts) <= {401, 405, 204}, (label, counts)


@pytest.mark.long
def test_before_the_first_configuration() -> None:
    """A proxy without a configuration answers with a documented 503, except for OPTIONS, liveness, and 405 at readiness."""
    seen = found(configured(1, **UNREADY), ready=False)  # type: ignore[arg-type]
    for label, counts in seen.statuses.items():
        path = label.rpartition(" ")[2]  # requests in sequence have no label
        expected = {503, 204, 405} if path in READY else {503, 204}
        assert path in LIVE or set(counts) <= expected, (label, counts)


@pytest.mark.long
@pytest.mark.parametrize("world", list(WORLDS))
def test_the_document_is_true_for_long(world: str) -> None:
    """The same with requests that are others in every run."""
    seen = found(configured(LONG_EXAMPLES, repeatable=False), **WORLDS[world])
    check_with_keys(seen)
    assert seen.requests > 4 * LONG_EXAMPLES


@pytest.mark.long
def test_an_untrue_document_is_found() -> None:
    """The campaign finds a status, a media type and a shape that differ from the document."""
    with contract(configured(2)) as schema:
        paths = schema.raw_schema["paths"]
        del paths["/proxy/client/register"]["post"]["responses"]["400"]
        paths["/proxy/health"]["get"]["responses"]["200"]["content"] = {"text/plain": {"schema": {"type": "string"}}}
        schema.raw_schema["components"]["schemas"]["Variant"]["properties"]["name"] = {"type": "integer"}
        wrong = "\n".join(campaign(schema).wrong)
    assert "POST /proxy/client/register: Undocumented status code" in wrong
    assert "GET /proxy/health: Undocumented Content-Type" in wrong
    assert "GET /proxy/all: Response violates schema" in wrong


EVERYTHING = {"enable_oas": True, "enable_all_endpoint": True, "ofrep": True}
STATUSES = {200, 202, 204, 304, 400, 401, 403, 404, 405, 413, 414, 415, 429, 431, 500, 501, 503}
"""Every status of the contract (behaviour: Statuses and bodies; Size limits; Rate limits; Caching; CORS)."""
OF_NO_OPERATION = {204, 404, 405, 501}
"""Statuses of preflights, of what is no operation, and of an operation that is switched off."""


def read(proxy: Fuzzed) -> dict[str, Any]:
    """Return the document that a proxy gives."""
    got = proxy.ask(proxy.keyed(Sent(path=b"/docs/openapi.json"), b"no key is needed"))
    assert got.status == 200 and got.headers["content-type"] == "application/json; charset=utf-8"
    content: dict[str, Any] = got.json()
    return content


@pytest.fixture(scope="module", params=["", "some/base"])
def document(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """The document of a proxy with everything on, at the root and below a base path."""
    with fuzzed(**EVERYTHING, proxy_base_path=request.param) as proxy:
        yield {"base": proxy.base, **read(proxy)}


def test_every_route_is_there(document: dict[str, Any]) -> None:
    """Every row of the route table that is listed is an operation, and there is no other; the files of the page, and the
    second names of probes and of the frontend API, are not listed."""
    told = {(path, method.upper()) for path, methods in document["paths"].items() for method in methods}
    assert told == {(row.place(document["base"]), row.method) for row in ROUTES if row.listed}
    files = {f"/docs/openapi/{name}" for name in ("swagger_bundle.js", "swagger_style.css", "init.js", "page.css")}
    seconds = {f"/internal-backstage/{name}" for name in ("health", "ready")}
    assert {row.path for row in ROUTES if not row.listed and not row.path.startswith("/api/proxy")} == files | seconds


def test_every_status_is_there(document: dict[str, Any]) -> None:
    """The document has every status of the proxy, at an operation or in a description."""
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    at_operations = {int(status) for operation in operations for status in operation["responses"]}
    in_words = {int(status) for status in re.findall(r"\b\d{3}\b", document["info"]["description"])}
    assert at_operations == STATUSES - OF_NO_OPERATION | {404}  # of a name in a path, and of any other path
    assert in_words == OF_NO_OPERATION


def test_the_shape_of_a_toggle(document: dict[str, Any]) -> None:
    """A toggle's schema is the specification's: no member is missing, and a payload is optional."""
    schemas = document["components"]["schemas"]
    assert set(schemas["Toggle"]["required"]) == {"name", "enabled", "impressionData", "variant"}
    assert set(schemas["Variant"]["required"]) == {"name", "enabled"}
    assert set(schemas["Variant"]["properties"]) == {"name", "enabled", "payload"}
    assert schemas["Toggles"]["required"] == ["toggles"]
