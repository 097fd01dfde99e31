"""The OpenAPI document of the proxy, the interactive page and its files."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace

from flagsvc.core.version import VERSION
from flagsvc.proxy.api.openapi import document
from flagsvc.proxy.api.settings import ServiceSettings
from support import forms
from support.serving import Serving

SETTINGS = ServiceSettings(client_keys=("k",), enable_oas=True, enable_all_endpoint=True, ofrep=True)


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


def test_what_an_operation_tells_depends_on_its_row() -> None:
    """A look-up by name has the name in its path, and may find no toggle. Only a request with a body can be too large."""
    paths = document(SETTINGS, "")["paths"]
    one, every = paths["/api/frontend/features/{name}"], paths["/api/frontend"]
    assert [each["name"] for each in one["get"]["parameters"] if each["in"] == "path"] == ["name"]
    assert "404" in one["get"]["responses"] and "404" not in every["get"]["responses"]
    assert "413" in every["post"]["responses"] and "413" not in every["get"]["responses"]


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
    assert json.loads(first)["info"]["version"] == VERSION
    assert serving.ask(b"GET", b"/docs/openapi.json").body is first


def test_the_bundle_is_not_imported() -> None:
    """Importing the package reads megabytes; only its files are read, and only with enableOAS."""
    script = "import sys, flagsvc.proxy.api.service; sys.exit('offapi' in sys.modules)"
    places = {**os.environ, "PYTHONPATH": str(forms.SOURCES)}
    assert subprocess.run([sys.executable, "-c", script], check=False, timeout=60, env=places).returncode == 0


def test_the_files_are_the_bundles() -> None:
    """The names that the page uses are defined by the bundle."""
    serving = Serving(enable_oas=True)
    for name, text in (
        ("swagger_bundle.js", b"SwaggerUIBundle"),
        ("init.js", b"SwaggerUIBundle({"),
        ("swagger_style.css", b".swagger-ui"),
    ):
        assert text in serving.ask(b"GET", f"/docs/openapi/{name}".encode()).body
