"""What a webhook sends of an event: headers and body. Pure, but for the identity of this program."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from flagsvc.core.version import VERSION
from flagsvc.http.client.transport import Header
from flagsvc.server.webhooks.provider import AUTHORIZATION, BODY, CONTENT_TYPE, HEADERS, SECRET, URL
from flagsvc.server.webhooks.signature import ID, SIGNATURE, TIMESTAMP, sign
from flagsvc.server.webhooks.template import escape_json, parse_template, render_template

JSON_TYPE = "application/json"
SHORTEST_TEMPLATE = 2
"""A template with fewer characters is none, as on the real server."""
READY = ("eventJson",)
"""The values of a template that are JSON already."""


class Message(NamedTuple):
    """A request: its address, headers and body."""

    url: str
    headers: list[Header]
    body: bytes


def make_message(parameters: Mapping[str, str], event: Mapping[str, Any], identity: str, seconds: int) -> Message:
    """Return what goes to the receiver of an event. Raises TemplateError.

    `identity` is the same for all attempts, `seconds` is the time (since the epoch).
    """
    media = parameters.get(CONTENT_TYPE) or JSON_TYPE
    body = make_body(parameters.get(BODY, ""), media, event)
    headers = {"content-type": media, "accept": "*/*", "user-agent": f"flagsvc/{VERSION}"}
    headers |= {ID: identity, TIMESTAMP: str(seconds)}
    if parameters.get(SECRET):
        headers[SIGNATURE] = sign(parameters[SECRET], identity, seconds, body)
    if parameters.get(AUTHORIZATION):
        headers["authorization"] = parameters[AUTHORIZATION]
    more = json.loads(parameters.get(HEADERS) or "{}")
    headers |= {name.lower(): value for name, value in more.items()}
    return Message(parameters[URL], [(name, value.encode()) for name, value in headers.items()], body)


def make_body(template: str, media: str, event: Mapping[str, Any]) -> bytes:
    """Return the body: the event as JSON, or what the template makes of it. Raises TemplateError."""
    text = json.dumps(event, ensure_ascii=False, separators=(",", ":"))
    if len(template) < SHORTEST_TEMPLATE:
        return text.encode()
    values = {"event": event, "eventJson": json.dumps(text, ensure_ascii=False), "eventMarkdown": event["summary"]}
    escape = escape_json if is_json(media) else str
    return render_template(parse_template(template), values, escape, READY).encode()


def is_json(media: str) -> bool:
    """Return whether a media type is JSON."""
    kind = media.partition(";")[0].strip().lower()
    return kind == JSON_TYPE or kind.endswith("+json")
