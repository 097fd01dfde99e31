"""The JSON body of a POST: its media type, charset and content coding, and the evaluation context in it. Compiled.

Source: (behaviour: Statuses and bodies; Context by POST).
"""

from __future__ import annotations

from typing import NamedTuple

from flagsvc.engine.context import Context
from flagsvc.engine.values import jsdate, jsnumber
from flagsvc.http.json_text import parse
from flagsvc.http.media import CHARSETS, JSON, UTF8, WINDOWS, BodyTooLargeError, CodingError, Media, unpack
from flagsvc.http.messages import HttpError, invalid
from flagsvc.http.reached_limits import BODY, TOGGLES
from flagsvc.proxy.api.query import too_long

LABELS = CHARSETS | {"utf8": UTF8}
"""Charset label → codec. A body in any other charset is refused, as by the reference."""
CODINGS = WINDOWS | {"": 0, "x-gzip": WINDOWS["gzip"]}


def media(content_type: bytes | None, content_encoding: bytes | None) -> Media:
    """Return how to read a body with these headers. Raises HttpError (415). A missing Content-Type means JSON."""
    coding = (content_encoding or b"").decode("latin-1").strip().lower()
    window = CODINGS.get(coding)
    if window is None:
        raise HttpError(415, f"the content coding `{coding[:100]}` is not known, only gzip and deflate are", [])
    return Media(window, charset(content_type.decode("latin-1"))) if content_type else Media(window, UTF8)


def untyped() -> HttpError:
    """Return the 415 for a request without a Content-Type, where a body must have one."""
    return HttpError(415, f"the header `Content-Type` is missing, `{JSON}` was expected", [])


def charset(content_type: str) -> str:
    """Return the codec that a Content-Type names. Raises HttpError (415) for any other media type or charset."""
    name, *parameters = content_type.split(";")
    if name.strip().lower() not in ("", JSON):
        raise HttpError(415, f"the media type `{name.strip()[:100]}` is not read, only {JSON} is", [])
    for parameter in parameters:
        key, _, value = parameter.partition("=")
        label = value.strip().strip('"')
        if key.strip().lower() == "charset" and label:
            return codec(label)
    return UTF8


def codec(label: str) -> str:
    """Return the codec of a charset label. Raises HttpError (415) for an unknown one."""
    found = LABELS.get(label.lower())
    if found is None:
        raise HttpError(415, f"the charset `{label[:100]}` is not known, only utf-8 and utf-16 are", [])
    return found


def unpacked(body: bytes, window: int, limit: int) -> bytes:
    """Return the decompressed body. Raises HttpError: 413 over `limit` bytes, 400 for damaged data."""
    try:
        return unpack(body, window, limit)
    except BodyTooLargeError:
        raise too_large(limit) from None
    except CodingError:
        raise HttpError(400, "the body is not of the content coding it claims", []) from None


def too_large(limit: int) -> HttpError:
    """Return the 413 for a body over `limit` bytes."""
    return HttpError(413, f"the body is larger than {limit} bytes", [], BODY)


MUST_BE_TEXT = "must be string"
MUST_BE_OBJECT = "must be object"
MUST_BE_ARRAY = "must be array"

TEXT_FIELDS = {
    "appName": "app_name",
    "environment": "environment",
    "userId": "user_id",
    "sessionId": "session_id",
    "remoteAddress": "remote_address",
}
"""Wire name of each standard text field → the attribute of Context."""


class LookupBody(NamedTuple):
    """The content of a POST /proxy body: the context, and the names of toggles.

    Without names, the answer lists all toggles that are on.
    """

    context: Context
    toggles: list[str]


def read_json(body: bytes, media: Media, limit: int, depth: int = 0) -> object:
    """Return the JSON value of a body; `{}` if it is empty.

    `depth` is the deepest nesting of lists and objects; 0 for the limit of the parser. Half a surrogate pair becomes U+FFFD.
    Raises HttpError: 413, or 400 with the position of the parser.
    """
    text = unpacked(body, media.window, limit) if media.window else body
    return parse(text, media.codec, depth) if text else {}


def read_lookup(value: object, most: int, longest: int = 0) -> LookupBody:
    """Return the context and the toggles of a POST /proxy body. Other members are ignored.

    `most` is the most toggles, and `longest` is as in read_context. Raises HttpError (400).
    """
    if not isinstance(value, dict):
        raise invalid("/body", None, MUST_BE_OBJECT)
    toggles = value.get("toggles", [])
    if not isinstance(toggles, list):
        raise invalid("/body", "toggles", MUST_BE_ARRAY)
    if len(toggles) > most:
        raise invalid("/body", "toggles", f"must NOT have more than {most} items", TOGGLES)
    names = [text("/body/toggles", str(index), each) or "" for index, each in enumerate(toggles)]
    context = value.get("context", {})
    if not isinstance(context, dict):
        raise invalid("/body", "context", MUST_BE_OBJECT)
    return LookupBody(read_context(context, longest), names)


def read_context(fields: dict[str, object], longest: int = 0) -> Context:
    """Return the context in the `context` object of a body. Raises HttpError (400).

    `longest` is the most characters of its time; 0 for any number. The caller checks the length of all other values.
    """
    context = Context()
    explicit = fields.get("properties", {})
    if not isinstance(explicit, dict):
        raise invalid("/body/context", "properties", MUST_BE_OBJECT)
    for name, value in fields.items():
        attribute = TEXT_FIELDS.get(name)
        if attribute is not None:
            setattr(context, attribute, text("/body/context", name, value) or None)
        elif name == "currentTime":
            context.current_time = read_time(value, longest)
        elif name != "properties" and value is not None:
            context.properties[name] = loose_text(value)
    for name, value in explicit.items():
        context.properties[name] = text("/body/context/properties", name, value) or ""
    return context


def read_lenient_lookup(value: object, most: int, longest: int = 0) -> LookupBody:
    """Return the context and the toggles of a body for the frontend API: `{"context": {…}}`, or the context itself.

    A value that is no scalar is ignored. So is `toggles`, unless it is a list of names. `most` and `longest` are those of
    read_lookup. Raises HttpError (400) if the body or its `context` is not an object, or there are too many toggles.
    """
    if not isinstance(value, dict):
        raise invalid("/body", None, MUST_BE_OBJECT)
    fields = value.get("context", value)
    if not isinstance(fields, dict):
        raise invalid("/body", "context", MUST_BE_OBJECT)
    toggles = value.get("toggles")
    names = [each for each in toggles if isinstance(each, str)] if isinstance(toggles, list) else []
    if isinstance(toggles, list) and len(names) != len(toggles):
        names = []
    if len(names) > most:
        raise invalid("/body", "toggles", f"must NOT have more than {most} items", TOGGLES)
    return LookupBody(read_lenient_context(fields, longest), names)


def read_lenient_context(fields: dict[str, object], longest: int = 0) -> Context:
    """Return the context in an object. Values that are no scalars are ignored; `longest` is that of read_context."""
    context = Context()
    explicit = fields.get("properties")
    for name, value in fields.items():
        if value is None or isinstance(value, list | dict):
            continue
        attribute = TEXT_FIELDS.get(name)
        if attribute is not None:
            setattr(context, attribute, loose_text(value) or None)
        elif name == "currentTime":
            if not (isinstance(value, str) and longest and len(value) > longest):
                context.current_time = read_time(value, longest)
        elif name != "properties":
            context.properties[name] = loose_text(value)
    if isinstance(explicit, dict):
        for name, value in explicit.items():
            if value is not None and not isinstance(value, list | dict):
                context.properties[name] = loose_text(value)
    return context


def text(place: str, name: str, value: object) -> str | None:
    """Return a scalar as the text that JavaScript writes; None for null. Raises HttpError (400) for an array or an object."""
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, list | dict):
        raise invalid(place, name, MUST_BE_TEXT)
    return jsnumber.scalar_text(value)


def loose_text(value: object) -> str:
    """Return the text that JavaScript makes of any value. A list is joined with commas; an object becomes `[object Object]`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(["" if each is None else loose_text(each) for each in value])
    return "[object Object]" if isinstance(value, dict) else jsnumber.scalar_text(value)


def read_time(value: object, longest: int = 0) -> float | None:
    """Return `currentTime` in epoch milliseconds: a number, or a text that JavaScript's Date reads; None for no date.

    Zero is absent, like everything that JavaScript takes for false. `longest` is the most characters of a text, 0 for any number.
    Raises HttpError (400) for a longer text, an array or an object.
    """
    if isinstance(value, str):
        if longest and len(value) > longest:
            raise too_long("/body/context", "currentTime", longest)
        return jsdate.parse(value)
    if isinstance(value, list | dict):
        raise invalid("/body/context", "currentTime", MUST_BE_TEXT)
    if value is None:
        return None
    milliseconds = jsnumber.from_json(value)
    return jsdate.from_number(milliseconds) if milliseconds else None
