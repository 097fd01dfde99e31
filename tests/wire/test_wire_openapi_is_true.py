"""The OpenAPI document is true: requests made from it get the answers it tells of (specification: GET /docs/openapi.json)."""

from __future__ import annotations

import json
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi import checks

from flagsvc.proxy.api.route import Auth, ProxyRoute
from flagsvc.proxy.api.routes import ROUTES
from support.wirekit import KEY, TOKEN, in_process, open_wire

LISTED = [row for row in ROUTES if row.listed]
CONFORMANCE = [
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
]
EXAMPLES = 5


def modes(row: ProxyRoute) -> list[GenerationMode]:
    """Return the ways to make requests for a row: valid ones and, if the row takes input, invalid ones."""
    return [GenerationMode.POSITIVE, GenerationMode.NEGATIVE] if row.query or row.body else [GenerationMode.POSITIVE]


CASES = [(row, mode) for row in LISTED for mode in modes(row)]


@pytest.mark.parametrize(("row", "mode"), CASES, ids=lambda each: getattr(each, "path", getattr(each, "name", "")))
def test_answers_are_those_of_the_document(row: ProxyRoute, mode: GenerationMode) -> None:
    """No 5xx, no undocumented status, type, header or shape; a documented request is never a 400."""
    wire = open_wire(in_process, enable_oas=True, enable_all_endpoint=True)
    schema = schemathesis.openapi.from_dict(json.loads(wire.get("/docs/openapi.json").body))
    operation: Any = schema[row.path][row.method]
    operation.app = wire.app
    key = TOKEN if row.auth is Auth.SERVER else KEY

    @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    @given(operation.as_strategy(generation_mode=mode))
    def run(case: Any) -> None:
        response = case.call(headers={} if row.auth is Auth.NONE else {"authorization": key})
        assert response.status_code < 500
        # 404: no toggle has that name
        good = {row.status, 404} if row.parameters else {row.status}
        assert mode is GenerationMode.NEGATIVE or response.status_code in good, response.text
        case.validate_response(response, checks=CONFORMANCE)

    run()
    assert wire.log.lines == []
