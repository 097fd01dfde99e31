"""The evaluation context in a query string, and the limits of any context (behaviour: Context by GET; decision 0020). Compiled.

A name is plain (`userId`, `region`), one level deep (`properties[region]`) or a list (`region[]`, `region[0]`). A component with a
bad percent escape, or whose bytes are no UTF-8, stays literal as a whole, as JavaScript's decodeURIComponent has it.
"""

from __future__ import annotations

from typing import Final

from mypy_extensions import i64

from flagsvc.engine.context import (
    APP_NAME,
    CURRENT_TIME,
    ENVIRONMENT,
    FIELDS,
    PROPERTIES,
    REMOTE_ADDRESS,
    SESSION_ID,
    USER_ID,
    Context,
)
from flagsvc.engine.values import jsdate
from flagsvc.http import reached_limits
from flagsvc.http.messages import HttpError, invalid

USUAL_TIME: Final = 100
"""The most characters of a date, if the limit for values is lower."""


class ContextLimits:
    """The limits of a context: the number of properties, the characters of a value, and the number of toggles asked for by name.

    `time` is the most characters of its time. The reader of the context checks it, because a context holds the time as a
    number.
    """

    def __init__(self, properties: int, value: int, toggles: int) -> None:
        self.properties: Final = properties
        self.value: Final = value
        self.time: Final = max(value, USUAL_TIME)
        self.toggles: Final = toggles

    def check(self, context: Context, place: str, inside: str) -> None:
        """Raise HttpError (400) if a context holds too much.

        JSON pointers are below `place`, those of properties below `inside`.
        """
        properties = context.properties
        if len(properties) > self.properties:
            raise invalid(inside, None, f"must NOT have more than {self.properties} properties", reached_limits.PROPERTIES)
        self.check_text(place, "userId", context.user_id)
        self.check_text(place, "sessionId", context.session_id)
        self.check_text(place, "remoteAddress", context.remote_address)
        self.check_text(place, "appName", context.app_name)
        self.check_text(place, "environment", context.environment)
        for name, text in properties.items():
            if len(name) > self.value:
                raise invalid(inside, None, f"must NOT have names of more than {self.value} characters", reached_limits.VALUE)
            self.check_text(inside, name, text)

    def check_text(self, place: str, name: str, text: str | None) -> None:
        """Raise HttpError (400) for a text that is too long. `name` is its name below `place`."""
        if text is not None and len(text) > self.value:
            raise too_long(place, name, self.value)


def too_long(place: str, name: str, most: int) -> HttpError:
    """Return the 400 for the text `name` below `place`, which has more than `most` characters."""
    return invalid(place, name, f"must NOT have more than {most} characters", reached_limits.VALUE)


NESTED: Final = "properties["
MUST_BE_TEXT: Final = "must be string"
MUST_BE_OBJECT: Final = "must be object"
DIGITS: Final = "0123456789abcdefABCDEF"
OCTETS: Final[dict[str, bytes]] = {high + low: bytes([int(high + low, 16)]) for high in DIGITS for low in DIGITS}
"""The two hexadecimal digits of a percent escape → its byte."""


class QueryProperties:
    """Properties by name. The values of a repeated property are kept in order and joined with commas."""

    def __init__(self, values: dict[str, str]) -> None:
        self.values = values
        self.repeats: dict[str, list[str]] | None = None

    def put(self, name: str, value: str) -> None:
        known = self.values.get(name)
        if known is None:
            self.values[name] = value
        else:
            self.repeat(name, known, value)

    def repeat(self, name: str, known: str, value: str) -> None:
        """Add another value of a property that already has one."""
        if self.repeats is None:
            self.repeats = {}
        values = self.repeats.get(name)
        if values is None:
            self.repeats[name] = [known, value]
        else:
            values.append(value)

    def join(self) -> dict[str, str]:
        if self.repeats is not None:
            for name, values in self.repeats.items():
                self.values[name] = ",".join(values)
        return self.values


class QueryContext:
    """The content of a query string: a context, with properties sent by name (`top_level`) or inside `properties` (`explicit`).

    `longest` is the most characters of its time; 0 for any number.
    """

    def __init__(self, longest: int = 0) -> None:
        self.longest: Final = longest
        self.context = Context()
        self.seen: i64 = 0
        self.top_level = QueryProperties(self.context.properties)
        self.explicit: QueryProperties | None = None

    def add(self, name: str, value: str) -> None:
        if "[" in name:
            self.add_nested(name, value)
        else:
            self.add_plain(name, value)

    def add_plain(self, name: str, value: str) -> None:
        """Add a standard field, or a property of any other name. A parameter without a name is dropped."""
        kind = FIELDS.get(name)
        if kind is not None:
            self.add_standard(kind, name, value)
        elif name:
            self.top_level.put(name, value)

    def add_standard(self, kind: i64, name: str, value: str) -> None:
        """Add a standard field. It may come only once, as text; an empty one counts as missing."""
        if kind == PROPERTIES:
            raise invalid("/query", name, MUST_BE_OBJECT)
        bit: i64 = 1 << kind
        if self.seen & bit:
            raise invalid("/query", name, MUST_BE_TEXT)
        self.seen |= bit
        if value:
            self.set_standard(kind, value)

    def set_standard(self, kind: i64, value: str | None) -> None:
        """Set the standard field of this kind; None removes it."""
        context = self.context
        if kind == USER_ID:
            context.user_id = value
        elif kind == SESSION_ID:
            context.session_id = value
        elif kind == APP_NAME:
            context.app_name = value
        elif kind == ENVIRONMENT:
            context.environment = value
        elif kind == REMOTE_ADDRESS:
            context.remote_address = value
        elif kind == CURRENT_TIME:
            if value is not None and self.longest and len(value) > self.longest:
                raise too_long("/query", "currentTime", self.longest)
            context.current_time = None if value is None else jsdate.parse(value)

    def add_nested(self, name: str, value: str) -> None:
        """Add a parameter with brackets in its name. `properties[region]` without further brackets is by far the most frequent."""
        if name.startswith(NESTED) and name.endswith("]"):
            inner = name[len(NESTED) : -1]
            if inner and "[" not in inner and "]" not in inner:
                self.put_explicit(inner, value)
                return
        self.add_segments(split_name(name), value)

    def add_segments(self, segments: list[str], value: str) -> None:
        """Add a parameter by the segments of its name: a property inside `properties`, or an entry of a list."""
        root = segments[0]
        if len(segments) == 1:
            self.add_plain(root, value)
        elif root == "properties":
            self.add_explicit(segments, value)
        elif root in FIELDS:
            raise invalid("/query", root, MUST_BE_TEXT)
        elif is_list(segments, 1):
            self.top_level.put(root, value)
        else:
            raise invalid("/query", root, MUST_BE_TEXT)

    def add_explicit(self, segments: list[str], value: str) -> None:
        """Add `properties[name]`. An explicit property wins over a property that is sent by its name alone."""
        name = segments[1]
        if not name:
            raise invalid("/query", "properties", MUST_BE_OBJECT)
        if not is_list(segments, 2):
            raise invalid("/query/properties", name, MUST_BE_TEXT)
        self.put_explicit(name, value)

    def put_explicit(self, name: str, value: str) -> None:
        if self.explicit is None:
            self.explicit = QueryProperties({})
        self.explicit.put(name, value)

    def finish(self) -> Context:
        """Return the context; explicit properties win."""
        properties = self.top_level.join()
        if self.explicit is not None:
            properties.update(self.explicit.join())
        return self.context


class LenientQueryContext(QueryContext):
    """The content of a query string, in which everything that cannot be read is ignored, as the real server has it."""

    def add_standard(self, kind: i64, name: str, value: str) -> None:
        """Add a standard field. One that comes several times counts as missing."""
        if kind == PROPERTIES or (kind == CURRENT_TIME and self.longest and len(value) > self.longest):
            return
        bit: i64 = 1 << kind
        if self.seen & bit:
            self.set_standard(kind, None)
        elif value:
            self.set_standard(kind, value)
        self.seen |= bit

    def add_segments(self, segments: list[str], value: str) -> None:
        """Add a parameter by the segments of its name; ignore one with more levels."""
        if segments[0] == "properties" and len(segments) > 1:
            if segments[1] and is_list(segments, 2):
                self.put_explicit(segments[1], value)
        elif is_list(segments, 1):
            self.add_plain(segments[0], value)


def read_query(query: bytes, longest: int = 0) -> Context:
    """Return the context in a query string. Raises HttpError if a field has the wrong shape.

    Its time may have at most `longest` characters; 0 for any number. The caller checks the length of all other values.
    """
    return read_parameters(QueryContext(longest), query)


def read_lenient_query(query: bytes, longest: int = 0) -> Context:
    """Return the context in a query string. What cannot be read is ignored, and so is a time of more than `longest` characters."""
    return read_parameters(LenientQueryContext(longest), query)


def read_parameters(found: QueryContext, query: bytes) -> Context:
    """Add the parameters of a query string, and return the context."""
    if query:
        text = query.decode("utf-8", "replace")
        if "%5" in text:
            text = unescape_brackets(text)
        if "%" in text or "+" in text:
            read_escaped(found, text)
        else:
            read_plain(found, text)
    return found.finish()


def read_plain(found: QueryContext, text: str) -> None:
    """Add the parameters of a query that has nothing to decode."""
    for part in text.split("&"):
        at = part.find("=")
        if at < 0:
            found.add(part, "")
        else:
            found.add(part[:at], part[at + 1 :])


def read_escaped(found: QueryContext, text: str) -> None:
    """Add the parameters of a query, with each name and value decoded."""
    for part in text.split("&"):
        at = part.find("=")
        if at < 0:
            found.add(decode(part), "")
        else:
            found.add(decode(part[:at]), decode(part[at + 1 :]))


def unescape_brackets(text: str) -> str:
    """Return a query with its escaped brackets decoded.

    Brackets are decoded in every component, even in one that stays literal, and `%[` starts no escape. So this step can come first,
    and a query from a browser usually has nothing else to decode.
    """
    return text.replace("%5B", "[").replace("%5b", "[").replace("%5D", "]").replace("%5d", "]")


def decode(text: str) -> str:
    """Return a name or value with `+` as a blank and percent escapes decoded; unchanged as a whole if one escape is bad."""
    if "+" in text:
        text = text.replace("+", " ")
    return unquote(text) if "%" in text else text


def unquote(text: str) -> str:
    """Return `text` with its percent escapes decoded; unchanged if one is bad or the bytes are not UTF-8."""
    pieces = text.split("%")
    octets: list[bytes] = [pieces[0].encode()]
    for piece in pieces[1:]:
        octet = OCTETS.get(piece[:2])
        if octet is None:
            return text
        octets.append(octet)
        octets.append(piece[2:].encode())
    try:
        return b"".join(octets).decode("utf-8")
    except UnicodeDecodeError:
        return text


def split_name(name: str) -> list[str]:
    """Return the segments of a name with brackets: `a[b][c]` is a, b, c. Text after a closed bracket is dropped."""
    at = name.find("[")
    segments = [name[:at]] if at else []
    while at >= 0:
        end = find_closing(name, at)
        if end < 0:
            segments.append(name[at:])
            break
        segments.append(name[at + 1 : end])
        at = name.find("[", end)
    return segments


def find_closing(name: str, at: int) -> int:
    """Return the index at which the bracket opened at `at` closes, counting nested brackets; -1 if it does not close."""
    depth: i64 = 0
    for index in range(at, len(name)):
        if name[index] == "[":
            depth += 1
        elif name[index] == "]":
            depth -= 1
            if depth == 0:
                return index
    return -1


def is_list(segments: list[str], start: int) -> bool:
    """Return whether there are no segments from `start` on, or only one that marks an entry of a list (`[]`, `[0]`)."""
    if len(segments) == start:
        return True
    return len(segments) == start + 1 and (not segments[start] or segments[start].isdigit())


def named_in(path: bytes, prefix: str) -> str:
    """Return the name that is the rest of a path below `prefix`, decoded."""
    return unquote(single_slashes(path)[len(prefix) :].rstrip(b"/").decode("utf-8", "replace"))


def single_slashes(path: bytes) -> bytes:
    """Return a path with one slash where several follow each other."""
    while b"//" in path:
        path = path.replace(b"//", b"/")
    return path


def fold_path(path: bytes) -> bytes:
    """Return a path as the routes are spelled: in lower case, and without a slash at the end."""
    return path.lower().rstrip(b"/")
