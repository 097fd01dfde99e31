"""The media type, charset and content coding of a request to the proxy (behaviour: Statuses and bodies)."""

from __future__ import annotations

from flagsvc.http.media import CHARSETS, JSON, UTF8, WINDOWS, BodyTooLargeError, CodingError, Media, unpack
from flagsvc.http.messages import HttpError
from flagsvc.http.reached_limits import BODY

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
