"""The one provider of addons, `webhook`: its parameters, the checks of their values (dialects: Addons), and the signature.

The signature is that of the Standard Webhooks, an HMAC with SHA-256 over `id.timestamp.body`, in Base64, with the version `v1`
before it (decision 0033). Receivers verify it with the libraries of Standard Webhooks or alone.
"""

from __future__ import annotations

import binascii
import hmac
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from flagsvc.http.client.addresses import host_of, web_parts
from flagsvc.server.store.checks import Json, invalid, make_detail
from flagsvc.server.store.errors import CallerError, Detail, bad_data
from flagsvc.server.store.event_kinds import ROWS
from flagsvc.server.webhooks.template import TemplateError, parse_template
from flagsvc.settings.headers import FRAMING_HEADERS
from flagsvc.settings.kinds import nearest

PROVIDER = "webhook"
ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
PREFIX = "whsec_"
"""A secret that begins with this goes on with its bytes in Base64."""
MASK = "*****"
"""What answers have in place of a sensitive value. Sent back in a change, it stands for the stored value."""
ALL = "*"
TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e\t]*")
SENT_BY_US = FRAMING_HEADERS - {"proxy-authorization"} | {ID, TIMESTAMP, SIGNATURE}
MOST_HEADERS = 50
SHORTEST_SECRET = 16
"""The fewest characters of a secret for signatures."""


def url_fault(text: str) -> str:
    """Return what is wrong with the address of a receiver; empty for a valid one."""
    parts = web_parts(text)
    if parts is None or not text.isprintable() or " " in text:
        return "must be an http or https address"
    try:
        host_of(parts)
    except UnicodeError:
        return "must have a host that can be asked for"
    return ""


def header_fault(text: str) -> str:
    """Return what is wrong with the value of a header; empty for a valid one."""
    return "" if HEADER_VALUE.fullmatch(text) else "must have printable characters of ASCII only"


def headers_fault(text: str) -> str:
    """Return what is wrong with further headers; empty for a JSON object of texts. The message has no value of a header."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return "must be a JSON object"
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        return "must be a JSON object whose members are texts"
    if len(found) > MOST_HEADERS:
        return f"must have at most {MOST_HEADERS} headers"
    return next(filter(None, (_one_header_fault(name, value) for name, value in found.items())), "")


def _one_header_fault(name: str, value: str) -> str:
    if TOKEN.fullmatch(name) is None:
        return f"must have names of headers: `{name}` is none"
    if name.lower() in SENT_BY_US:
        return f"must not have the header `{name}`, which the server itself sends"
    fault = header_fault(value)
    return f"{fault}: the header `{name}`" if fault else ""


def template_fault(text: str) -> str:
    """Return what is wrong with a body template; empty for a valid one."""
    try:
        parse_template(text)
    except TemplateError as error:
        return f"must be a template: {error}"
    return ""


def secret_fault(text: str) -> str:
    """Return what is wrong with a secret for signatures; empty for a valid one."""
    try:
        key = key_of(text)
    except ValueError:
        return "must be Base64 after `whsec_`"
    return "" if len(key) >= SHORTEST_SECRET else f"must have at least {SHORTEST_SECRET} bytes"


class Parameter(NamedTuple):
    """A parameter of the provider; `type` says how a form shows it. `fault` returns what is wrong with a value."""

    name: str
    title: str
    words: str
    type: str
    fault: Callable[[str], str]
    sensitive: bool = False
    required: bool = False
    placeholder: str = ""

    def to_json(self) -> Json:
        """Return the parameter as the API answers it."""
        shown = {"name": self.name, "displayName": self.title, "description": self.words, "type": self.type}
        more = {"placeholder": self.placeholder} if self.placeholder else {}
        return shown | more | {"required": self.required, "sensitive": self.sensitive}


URL, CONTENT_TYPE, AUTHORIZATION, HEADERS, BODY, SECRET = (
    *("url", "contentType", "authorization", "customHeaders", "bodyTemplate", "signingSecret"),
)
PARAMETERS: tuple[Parameter, ...] = (
    Parameter(URL, "URL", "The http or https address that gets a POST for each event.", "url", url_fault, True, True),
    Parameter(
        CONTENT_TYPE,
        "Content type",
        "The Content-Type header; application/json without one.",
        "text",
        header_fault,
        placeholder="application/json",
    ),
    Parameter(AUTHORIZATION, "Authorization", "The Authorization header; none without a value.", "text", header_fault, True),
    Parameter(
        HEADERS,
        "More headers",
        "A JSON object of names and values of headers.",
        "textfield",
        headers_fault,
        True,
        placeholder='{"X-Team": "shop"}',
    ),
    Parameter(
        BODY,
        "Body template",
        "A template (Mustache) of the body; without one the body is the event as JSON."
        " It knows event, eventJson and eventMarkdown.",
        "textfield",
        template_fault,
        placeholder='{"text": "{{eventMarkdown}}"}',
    ),
    Parameter(
        SECRET,
        "Signing secret",
        "Signs each request, in the header webhook-signature; at least 16 characters.",
        "text",
        secret_fault,
        True,
    ),
)
NAMED: Mapping[str, Parameter] = {row.name: row for row in PARAMETERS}
EVENT_TYPES = tuple(row.type for row in ROWS)
"""The types of events that this server writes. A webhook may name others, which the real server writes."""


def describe_provider() -> Json:
    """Return the provider as the API answers it."""
    return {
        "name": PROVIDER,
        "displayName": "Webhook",
        "description": "Sends each event as an HTTP request to an address of yours.",
        "documentationUrl": "https://docs.getunleash.io/docs/addons/webhook",
        "parameters": [row.to_json() for row in PARAMETERS],
        "events": list(EVENT_TYPES),
    }


def check_provider(name: str) -> None:
    """Raise CallerError (400) for any other provider."""
    if name != PROVIDER:
        raise bad_data(f"there is no provider `{name}` of addons here: the only one is `{PROVIDER}`")


def check_parameters(given: Mapping[str, Any], stored: Mapping[str, str]) -> dict[str, str]:
    """Return the parameters to store. The mask stands for the stored value. Raises CallerError (400)."""
    found = {name: stored.get(name, "") if value == MASK else value for name, value in given.items()}
    found = {name: value for name, value in found.items() if value != "" or given[name] == ""}
    faults = [fault for name, value in found.items() if (fault := _fault_of(name, value))]
    if faults:
        raise invalid(*faults)
    missing = [row.name for row in PARAMETERS if row.required and row.name not in found]
    if missing:
        raise missing_parameters(missing)
    return found


def missing_parameters(names: list[str]) -> CallerError:
    return bad_data(f"Missing required parameters: {','.join(names)}")


def _fault_of(name: str, value: Any) -> Detail | None:
    """Return what is wrong with a parameter; None if nothing is. It has no sensitive value."""
    label, row = f'"parameters.{name}"', NAMED.get(name)
    if row is None:
        return {"message": f"{label} is not allowed. {nearest(name, list(NAMED))}".strip()}
    if value == "":
        return make_detail(f"{label} is not allowed to be empty")
    fault = row.fault(value) if isinstance(value, str) else "must be a string"
    return {"message": f"{label} {fault}"} if fault else None


def mask(parameters: Mapping[str, str]) -> dict[str, str]:
    """Return parameters with the sensitive ones masked."""
    return {name: value if is_open(name) else MASK for name, value in parameters.items()}


def is_open(name: str) -> bool:
    """Return whether everyone may see a parameter."""
    return name in NAMED and not NAMED[name].sensitive


def secrets_of(parameters: Mapping[str, str]) -> list[str]:
    """Return what may be secret in parameters: each sensitive value, and the value of each further header."""
    values = [value for name, value in parameters.items() if value and not is_open(name)]
    return [*values, *json.loads(parameters.get(HEADERS) or "{}").values()]


def origin_of(url: str) -> str:
    """Return scheme, host and port of an address: its path and query may hold secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"


def key_of(secret: str) -> bytes:
    """Return the key of a secret: the bytes of its text, or of its Base64. Raises ValueError for wrong Base64."""
    if not secret.startswith(PREFIX):
        return secret.encode()
    try:
        return b64decode(secret.removeprefix(PREFIX), validate=True)
    except binascii.Error:
        raise ValueError("wrong Base64") from None


def sign(secret: str, identity: str, seconds: int, body: bytes) -> str:
    """Return the signature of a body that is sent with an id at a time (seconds since the epoch). Raises ValueError."""
    signed = f"{identity}.{seconds}.".encode() + body
    return f"v1,{b64encode(hmac.digest(key_of(secret), signed, sha256)).decode()}"
