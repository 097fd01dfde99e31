"""The OpenAPI document of the proxy."""

from __future__ import annotations

import json
from dataclasses import replace

from flagsvc.core.version import VERSION
from flagsvc.proxy.api.openapi import document
from flagsvc.proxy.api.settings import ServiceSettings
from support.serving import Serving

SETTINGS = ServiceSettings(client_keys=("k",), enable_oas=True, enable_all_endpoint=True)


def references(value: object) -> list[str]:
    """Return every reference in a document."""
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return own + [found for each in value.values() for found in references(each)]
    return [found for each in value for found in references(each)] if isinstance(value, list) else []


def test_what_is_off_is_not_told() -> None:
    """Without enableAllEndpoint the document has no /proxy/all."""
    off = document(replace(SETTINGS, enable_all_endpoint=False), "")
    assert "/proxy/all" in document(SETTINGS, "")["paths"]
    assert "/proxy/all" not in off["paths"]


def test_references_lead_somewhere() -> None:
    """Every reference is a schema of the document, and every schema is used."""
    content = document(SETTINGS, "")
    known = {f"#/components/schemas/{name}" for name in content["components"]["schemas"]}
    assert set(references(content)) == known


def test_operations_have_names_of_their_own() -> None:
    """Identifiers are unique."""
    content = document(SETTINGS, "")
    names = [operation["operationId"] for methods in content["paths"].values() for operation in methods.values()]
    assert len(names) == len(set(names))
    assert content["info"]["version"] == VERSION


def test_the_key_is_where_the_option_says() -> None:
    """The security schemes name the header of the option."""
    schemes = document(replace(SETTINGS, client_keys_header_name="x-key"), "")["components"]["securitySchemes"]
    assert {scheme["name"] for scheme in schemes.values()} == {"x-key"}


def test_no_secret_is_told() -> None:
    """The document contains no keys and no tokens."""
    content = json.dumps(document(replace(SETTINGS, client_keys=("secret-1",), server_tokens=("secret-2",)), ""))
    assert "secret-" not in content


def test_the_document_is_made_once_for_a_mount() -> None:
    """It is kept for the place it was last asked for."""
    serving = Serving(enable_oas=True)
    first = serving.ask(b"GET", b"/docs/openapi.json").body
    assert serving.ask(b"GET", b"/docs/openapi.json").body is first
