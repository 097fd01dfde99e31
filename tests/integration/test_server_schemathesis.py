"""schemathesis against the flag server's own OpenAPI document: the server behaves as the document says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from schemathesis.python import asgi

from fuzzing.contract import STREAMS, Campaign, campaign
from support.flagservers import BACKEND_SECRET, FRONTEND_SECRET, USER_SECRET, app_client

EXAMPLES = 2
LONG_EXAMPLES = 400
TOKENS = {
    "adminToken": {"api_key": USER_SECRET},
    "backendToken": {"api_key": BACKEND_SECRET},
    "frontendToken": {"api_key": FRONTEND_SECRET},
}
SECRETS = {"/api/client": BACKEND_SECRET, "/api/frontend": FRONTEND_SECRET}
LENIENT = {
    "negative_data_rejection": {"enabled": False},
    "positive_data_acceptance": {"enabled": False},
    "use_after_free": {"enabled": False},
    "ensure_resource_availability": {"enabled": False},
}
"""Values are coerced, and whether what a body names exists is not in its schema."""

BESIDE_A_PARAMETER = "Allow header mismatch"
"""`/segments/validate` is also `/segments/:id`, so that methods of the latter are allowed there."""


class Plain(Campaign):
    """What schemathesis saw, of a server whose answers have no CORS headers."""

    def note(self, label: str, response: Any) -> None:
        """Count an answer."""
        self.statuses.setdefault(label, Counter())[response.status_code] += 1


@contextmanager
def schema_of(folder: Path, examples: int, *, tokens: bool = True, repeatable: bool = True) -> Iterator[Any]:
    """Give the schema of a flag server in this process; in the end it has met nothing that it did not expect.

    With `repeatable`, bodies are sent by example. Else every variation of them is sent, too, which takes minutes. Without tokens
    variations tell nothing more.
    """
    generation = {"max-examples": examples, "deterministic": repeatable, "mode": "all", "database": "none"}
    auth = {"auth": {"openapi": TOKENS}} if tokens else {}
    phases = {"coverage": {"enabled": tokens and not repeatable}}
    config = schemathesis.Config.from_dict({"generation": generation, "checks": LENIENT, "phases": phases, **auth})
    with app_client(str(folder / "flags.db")) as client:
        try:
            schema = schemathesis.openapi.from_asgi("/docs/openapi.json", client.app, config=config)
            # with toggleMaintenance nothing could be changed any more
            yield schema.exclude(operation_id="toggleMaintenance").exclude(path_regex=STREAMS)
        finally:
            asgi.shutdown_lifespans()
        assert not client.log.at("error", "fatal"), client.log.lines


def found(folder: Path, examples: int, **given: Any) -> Campaign:
    """Return what schemathesis saw, after checking that it found nothing wrong."""
    with schema_of(folder, examples, **given) as schema:
        seen = campaign(schema, Plain())
    wrong = [each for each in seen.wrong if BESIDE_A_PARAMETER not in each]
    assert not wrong, "\n".join(wrong[:5])
    return seen


def test_the_document_is_true(tmp_path: Path) -> None:
    """No 5xx, no undocumented status or media type, no body that breaks its schema."""
    seen = found(tmp_path, EXAMPLES)
    assert {200, 400, 401} <= seen.all_statuses()


@pytest.mark.long
def test_without_a_token_nothing_is_told(tmp_path: Path) -> None:
    """Without a token, only open routes answer; all others are 401, with any other fault except a body that is not JSON.

    `tests/unit/server/api/test_routes.py` asks each route once.
    """
    seen = found(tmp_path, 2, tokens=False)
    for label, counts in seen.statuses.items():
        assert "/api/" not in label or label.endswith("live.js") or set(counts) <= {400, 401, 415}, (label, counts)


def test_a_method_that_no_path_has_is_refused(tmp_path: Path) -> None:
    """TRACE is 405 at each path of the document, and `Allow` names at least the methods that the document has there."""
    with app_client(str(tmp_path / "flags.db")) as client:
        paths = client.get("/docs/openapi.json").json()["paths"]
        for path, operations in paths.items():
            token = next((secret for start, secret in SECRETS.items() if path.startswith(start)), USER_SECRET)
            answer = client.ask("TRACE", path.replace("{", "").replace("}", ""), token=token)
            methods = {method.upper() for method in operations} - {"PARAMETERS"}
            assert answer.status == 405 and methods <= set(answer.headers["allow"].replace(" ", "").split(",")), path


@pytest.mark.long
def test_the_document_is_true_for_long(tmp_path: Path) -> None:
    """The same with all wrong bodies, other methods (405 with Allow), and requests that are others in every run."""
    seen = found(tmp_path, LONG_EXAMPLES, repeatable=False)
    assert seen.requests > LONG_EXAMPLES and {200, 400, 401, 405, 415} <= seen.all_statuses()
