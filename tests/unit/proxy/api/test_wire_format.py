"""The wire format of `/proxy`."""

from __future__ import annotations

import json

from flagsvc.http.messages import HttpError
from flagsvc.proxy.api.wire_format import WireFormat


def test_the_body_of_an_error() -> None:
    """An error is a message, with its problems if there are some; some statuses have a text instead."""
    problems = [("/body/a", "must be string")]
    form = WireFormat(text_statuses=(401,))
    assert json.loads(form.error_body(HttpError(400, "no", problems), "authorization")) == {
        "error": "no",
        "validation": [{"instancePath": "/body/a", "message": "must be string"}],
    }
    assert json.loads(form.error_body(HttpError(404, "no", []), "authorization")) == {"error": "no"}
    assert form.error_body(HttpError(401, "no", []), "authorization") == b"no"
