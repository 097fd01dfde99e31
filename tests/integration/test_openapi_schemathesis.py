"""schemathesis tests the proxy against our own OpenAPI document (specification: Endpoints)."""

from __future__ import annotations

from typing import Any

import pytest

from fuzzing.contract import UNREADY, Campaign, campaign, configured, contract

EXAMPLES = 4
LONG_EXAMPLES = 1500
WORLDS: dict[str, dict[str, Any]] = {
    "everything on": {},
    "below a base path": {
        "proxy_base_path": "some/base",
        "enable_all_endpoint": False,
        "client_keys_header_name": "x-key",
        "variant_feature_state": True,
    },
}
LIVE, READY = ("/", "/proxy/live", "/livez"), ("/proxy/ready", "/readyz")
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


@pytest.mark.parametrize("world", list(WORLDS))
def test_the_document_is_true(world: str) -> None:
    """No 5xx, no undocumented status or media type, no body or header that breaks its schema; keys are checked; 405 with Allow."""
    check_with_keys(found(configured(EXAMPLES), **WORLDS[world]))


def test_without_a_key_nothing_is_told() -> None:
    """Without a key, a route that needs one answers only with a documented 401."""
    seen = found(configured(2, keys=False))
    for label, counts in seen.statuses.items():
        path = label.rpartition(" ")[2]  # requests in sequence have no label
        assert path in OPEN or set(counts) <= {401, 405, 204}, (label, counts)


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
