"""OFREP, OpenFeature's remote protocol: contexts, values and errors (dialects: OpenFeature Remote Evaluation Protocol). Compiled.

A key of the protocol is the name of a toggle, and its value is whether the toggle is on. If variants of the toggle have payloads,
the value is the payload of the variant. Without a payload there is no value, so that the caller's code has its default. The key
`NAME:enabled` tells whether such a toggle is on; no name of a toggle has a colon.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable
from typing import Any, Final

import msgspec
from mypy_extensions import i64, mypyc_attr

from flagsvc.engine.features import Toggle, ToggleOutcome
from flagsvc.engine.fragments import AnswerShape, encode
from flagsvc.engine.ways import ALIKE, BY_CONTEXT, SWITCHED_OFF, way_of
from flagsvc.http.call import Answer, Call, Handler
from flagsvc.http.http_errors import UNAUTHORIZED
from flagsvc.http.messages import HttpError, Response, invalid
from flagsvc.proxy.api.body import MUST_BE_OBJECT, LookupBody, read_json, read_lenient_context
from flagsvc.proxy.api.evaluation import Evaluator, Lookup
from flagsvc.proxy.api.query import ContextLimits, named_in
from flagsvc.proxy.api.streams import StreamParts, read_parameter, stream_url
from flagsvc.proxy.api.wire_format import WireFormat, no_key

TARGETING_KEY: Final = "targetingKey"
STATE_SUFFIX: Final = ":enabled"
"""The end of a key whose value is whether the toggle is on."""
PAYLOAD: Final = b'"payload":{'
"""Only a variant with a payload has this text: within a text of JSON, quotes are escaped."""
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")

PARSE_ERROR: Final = "PARSE_ERROR"
HEARD_OF: Final = "flagConfigEtag"
"""The parameter with the version of which a caller has heard."""
INACTIVE_S: Final = 120
"""Seconds after which a page that is hidden closes its stream."""
INVALID_CONTEXT: Final = "INVALID_CONTEXT"
FLAG_NOT_FOUND: Final = "FLAG_NOT_FOUND"
GENERAL: Final = "GENERAL"


def reason_of(toggle: Toggle) -> str:
    """Return the protocol's reason for any value of a toggle: how the toggle is decided."""
    way: i64 = way_of(toggle)
    if way == SWITCHED_OFF:
        return "DISABLED"
    return "STATIC" if way == ALIKE else "TARGETING_MATCH" if way == BY_CONTEXT else "SPLIT"


def has_payloads(toggle: Toggle) -> bool:
    """Return whether any variant of a toggle has a payload."""
    for outcome in toggle.outcomes:
        if PAYLOAD in outcome.fragment:
            return True
    return False


def payload_value(payload: dict[str, str]) -> bytes | None:
    """Return the JSON value of a payload; None if it is not of its type. A number stays as its author wrote it.

    A payload of JSON that is null is no value: the protocol has none.
    """
    text, kind = payload.get("value", ""), payload.get("type", "")
    if kind == "number":
        return text.strip().encode() if NUMBER.fullmatch(text.strip()) else None
    if kind != "json":
        return encode(text)
    try:
        value: object = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return b"" if value is None else text.strip().encode()


def failure(key: str, code: str, details: str) -> bytes:
    """Return the failure of one key."""
    return encode({"key": key, "errorCode": code, "errorDetails": details})


def success(key: str, value: bytes, reason: str, variant: str, impression: bool) -> bytes:
    """Return the value of one key; empty bytes stand for no value."""
    parts = [b'{"key":', encode(key)]
    if value:
        parts += [b',"value":', value]
    parts += [b',"reason":"', reason.encode(), b'","variant":', encode(variant)]
    parts.append(b',"metadata":{"impressionData":true}}' if impression else b"}")
    return b"".join(parts)


class ToggleShape(AnswerShape):
    """A shape that knows the toggle of the last fragment.

    A toggle may have thousands of outcomes, and its reason and its payloads are found once for all of them.
    """

    def __init__(self, name: bytes, opening: bytes = b"", closing: bytes = b"") -> None:
        super().__init__(name, opening, closing)
        self.toggle: Toggle | None = None
        self.reason = ""
        self.has_payloads = False

    def learn(self, toggle: Toggle) -> None:
        """Find out about a toggle, unless it is the last one."""
        if toggle is not self.toggle:
            self.toggle = toggle
            self.reason = reason_of(toggle)
            self.has_payloads = has_payloads(toggle)


class StateShape(ToggleShape):
    """Whether a toggle is on, under the key `NAME:enabled`, without anything around it."""

    def __init__(self) -> None:
        super().__init__(b"s")

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the state of a toggle."""
        plain: Any = msgspec.json.decode(outcome.fragment[1:])
        key = plain["name"] + STATE_SUFFIX
        if toggle is None:
            return b"," + failure(key, FLAG_NOT_FOUND, "there is no such flag")
        self.learn(toggle)
        value = b"true" if outcome.enabled else b"false"
        variant = "enabled" if outcome.enabled else "disabled"
        return b"," + success(key, value, self.reason, variant, plain["impressionData"])


class FlagShape(ToggleShape):
    """The value of a toggle, without anything around it."""

    def __init__(self, name: bytes = b"v", opening: bytes = b"", closing: bytes = b"") -> None:
        super().__init__(name, opening, closing)

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the value of a toggle."""
        plain: Any = msgspec.json.decode(outcome.fragment[1:])
        name, variant = plain["name"], plain["variant"]
        if toggle is None:
            return b"," + failure(name, FLAG_NOT_FOUND, "there is no such flag")
        self.learn(toggle)
        value: bytes | None = b"true" if outcome.enabled else b"false"
        if self.has_payloads:
            payload = variant.get("payload")
            value = b"" if payload is None else payload_value(payload)
        if value is None:
            kind = variant["payload"]["type"]
            return b"," + failure(name, PARSE_ERROR, f"the payload of the variant `{variant['name']}` is not of the type {kind}")
        chosen = variant["name"] if variant["enabled"] or not outcome.enabled else "enabled"
        return b"," + success(name, value, self.reason, chosen, plain["impressionData"])


class BulkShape(FlagShape):
    """Every toggle with its value; a toggle whose variants have payloads also with its state."""

    def __init__(self) -> None:
        super().__init__(b"b", b'{"flags":[', b"]}")
        self.state = StateShape()

    def fragment(self, outcome: ToggleOutcome, toggle: Toggle | None) -> bytes:
        """Return the value of a toggle, and its state if that is another key."""
        value = FlagShape.fragment(self, outcome, toggle)
        if toggle is None or not self.has_payloads:
            return value
        return value + self.state.fragment(outcome, toggle)

    def end_with(self, mark: bytes, stream: str) -> None:
        """Close answers with the URL of the event stream. `mark` is another one whenever callers should get another URL."""
        endpoint = {"type": "sse", "endpoint": {"requestUri": stream}, "inactivityDelaySec": INACTIVE_S}
        self.mark = self.name + mark
        self.closing = b'],"eventStreams":[' + encode(endpoint) + b"]}"


class Bulk(Lookup):
    """POST /ofrep/v1/evaluate/flags: the value of every toggle, and the URL of the event stream, which is at `path`."""

    def __init__(self, evaluator: Evaluator, shape: BulkShape, streams: StreamParts | None, path: str) -> None:
        super().__init__(evaluator, True)
        self.shape = shape
        self.streams = streams
        self.path = path
        self.ticket = ""
        self.version = ""

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the values for the context in the body. Raises HttpError (400, 413).

        A caller may have heard of a version in the stream of another process. Then the answer waits for that version a moment, and
        a 304 would be wrong.
        """
        streams = self.streams
        if streams is None:
            return Lookup.answer(self, call, body)
        heard = read_parameter(call, HEARD_OF) if call.request.query else ""
        if heard and heard != streams.hints.read():
            call.if_none_match = None
            return self.answer_later(call, body, streams, heard)
        self.renew(streams)
        return Lookup.answer(self, call, body)

    async def answer_later(self, call: Call, body: bytes, streams: StreamParts, heard: str) -> Response:
        await streams.hints.catch_up(heard)
        self.renew(streams)
        answer = Lookup.answer(self, call, body)
        return answer if isinstance(answer, Response) else await answer

    def renew(self, streams: StreamParts) -> None:
        """Change the URL of the stream when the ticket or the version has changed."""
        ticket: str = streams.tickets.issue()
        version: str = streams.hints.read()
        if ticket != self.ticket or version != self.version:
            self.ticket = ticket
            self.version = version
            self.shape.end_with((ticket + version).encode(), stream_url(self.path, streams))


@mypyc_attr(allow_interpreted_subclasses=True)
class OfrepFormat(WireFormat):
    """The wire format of the protocol."""

    def __init__(self) -> None:
        super().__init__(b"no-cache", b"private, no-cache", (), BulkShape())
        self.reads_bearer = True
        self.tells_key_types = True
        self.merges_slashes = True
        self.compares_posts = True

    def read_body(self, value: object, limits: ContextLimits) -> LookupBody:
        """Return the context in a body, with the targeting key as the user. Raises HttpError (400)."""
        if not isinstance(value, dict):
            raise invalid("/body", None, MUST_BE_OBJECT)
        fields = value.get("context")
        if not isinstance(fields, dict):
            raise invalid("/body", "context", MUST_BE_OBJECT)
        context = read_lenient_context(fields, limits.time)
        key = context.properties.pop(TARGETING_KEY, "")
        if context.user_id is None and key:
            context.user_id = key
        limits.check(context, "/body/context", "/body/context")
        return LookupBody(context, [])

    def error_body(self, refused: HttpError, key_header: str) -> bytes:
        """Return the body of an error that belongs to no key."""
        told = no_key(key_header) if refused.status == 401 and refused.message == UNAUTHORIZED else details(refused)
        return encode({"errorCode": error_code(refused), "errorDetails": told})


def error_code(refused: HttpError) -> str:
    """Return the protocol's code of an error."""
    if refused.status != 400:
        return GENERAL
    return INVALID_CONTEXT if refused.problems else PARSE_ERROR


def details(refused: HttpError) -> str:
    """Return what is wrong, and where."""
    return "; ".join([refused.message, *[f"{pointer} {rule}" for pointer, rule in refused.problems]])


CODE: Final = re.compile(rb'\{"key":"(?:[^"\\]|\\.)*","errorCode":"([A-Z_]+)"')
STATUSES: Final[dict[bytes, int]] = {b"FLAG_NOT_FOUND": 404, b"PARSE_ERROR": 400}


class OneFlag(Handler):
    """POST below `prefix`: the value of the key that is the rest of the path. A failure has the status of its code."""

    def __init__(self, prefix: str, values: Evaluator, states: Evaluator) -> None:
        self.prefix = prefix
        self.values = values
        self.states = states

    def answer(self, call: Call, body: bytes) -> Answer:
        """Return the value of a flag for the context in the body. Raises HttpError (413, 415, 503)."""
        key = named_in(call.request.path, self.prefix)
        evaluator, name = self.find(key)
        if evaluator is None:
            return self.fail(call, 404, failure(key, FLAG_NOT_FOUND, "there is no such flag"))
        try:
            value = read_json(body, call.media, call.limit, call.depth)
            asked = evaluator.wire_format.read_body(value, evaluator.limits)
        except HttpError as refused:
            if refused.status != 400:
                raise
            return self.fail(call, 400, failure(key, error_code(refused), details(refused)))
        answer = evaluator.answer_context(call, asked.context, [name], False)
        return set_status(answer) if isinstance(answer, Response) else self.answer_later(answer)

    async def answer_later(self, answer: Awaitable[Response]) -> Response:
        return set_status(await answer)

    def find(self, key: str) -> tuple[Evaluator | None, str]:
        """Return who answers a key, and the name of the toggle; None for an unknown key."""
        snapshot = self.values.holder.current
        names = {} if snapshot is None else snapshot.names
        if key in names:
            return self.values, key
        name = key.removesuffix(STATE_SUFFIX)
        return (self.states, name) if name != key and name in names else (None, key)

    def fail(self, call: Call, status: int, body: bytes) -> Response:
        answers = self.values.answers
        return answers.make_response(status, answers.error, call, body, [])


def set_status(response: Response) -> Response:
    """Return the response for one key. A failure in it decides its status."""
    found = CODE.match(response.body)
    if found is not None:
        response.status = STATUSES[found[1]]
    return response
