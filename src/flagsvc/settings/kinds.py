"""The kinds of value that options take: each reads a text or a native value, and gives the value that is kept.

A parser knows no option, no source and no environment. It refuses with `RefusedError`, whose text never quotes the value.
`normalise.py` adds the option, the source and what may be shown of the value. Every parser reads its own results unchanged, so
a normalised value can be given again.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

Parser: TypeAlias = Callable[[object], Any]

AUTO = "auto"
MOST_HINTS, LONGEST_NEAR = 20, 200
"""Of a list, so many unknown names get a hint, and no longer ones: to find the nearest known name takes milliseconds."""
LARGEST = 2**31 - 1
"""The largest number of milliseconds, seconds or bytes an option takes."""


class RefusedError(ValueError):
    """A value is not what its option takes; the message is a hint at what to do, or empty, and never quotes a secret."""


def as_text(value: Any) -> str:
    """Return a normalised value as the text that would give it again; an unset one as `-`."""
    if value is None or value in ("", ()):
        return "-"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ", ".join(as_text(item) for item in value)
    return str(value)


def printable(text: str, most: int = 80) -> str:
    """Return a text as a message may show it: one line, printable, of `most` characters at the most."""
    shown = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text[: most + 1])
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def quoted(text: str) -> str | None:
    return f"`{printable(text)}`"


def unquoted(text: str) -> str | None:
    """Return None: a refused text of this kind is never shown."""
    return None


def as_it_is(value: Any) -> object:
    """Return a value with nothing to hide."""
    return value


def as_given(value: object, folder: str) -> object:
    """Return a value that names no file as it was given."""
    return value


def path_in(value: object, folder: str) -> object:
    """Return a relative path as one that begins with `folder`."""
    return os.path.join(folder, value.strip()) if isinstance(value, str) and not is_blank(value) else value


def paths_in(value: object, folder: str) -> object:
    """Return several relative paths, as a list or with commas between, as paths that begin with `folder`."""
    return [path_in(item, folder) for item in split(value)] if isinstance(value, str | list) else value


class Kind(NamedTuple):
    """One kind of value.

    `expects` ends the sentence "expected …", `metavar` stands for the value in the help. `parse` reads a text or a native value.
    `safe` masks the secrets of a normalised value, `show` makes text of the result. `echo` quotes a refused text, or returns None
    if the text must not be shown. `relative_to` puts the folder of the configuration file in front of a relative path. `words`
    are all values of a kind that lists them.
    """

    expects: str
    metavar: str
    parse: Parser
    safe: Callable[[Any], object] = as_it_is
    show: Callable[[Any], str] = as_text
    echo: Callable[[str], str | None] = quoted
    relative_to: Callable[[object, str], object] = as_given
    words: tuple[str, ...] = ()


def is_blank(value: object) -> bool:
    """Return whether `value` counts as not given: None, or a text of nothing but blanks."""
    return value is None or (isinstance(value, str) and not value.strip())


def parse_text(value: object) -> str:
    """Return a text without the blanks around it; raise RefusedError for control characters and what is not UTF-8."""
    if not isinstance(value, str):
        raise RefusedError
    text = value.strip()
    if any(ord(char) < 32 or ord(char) == 127 for char in text):
        raise RefusedError("it contains a control character")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise RefusedError("it is not UTF-8")
    return text


BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
"""A key that TOML takes without quotation marks."""


def parse_environment(value: object) -> str:
    """Return the name of an environment. A table is meant for one of several environments."""
    if isinstance(value, Mapping):
        tables = [str(name) for name, table in value.items() if isinstance(table, Mapping)]
        names = [name for name in tables if BARE_KEY.fullmatch(name)]
        raise RefusedError(f"did you mean `[environments.{printable(names[0]) if names else 'NAME'}]`?")
    return parse_text(value)


def parse_header_value(value: object) -> str:
    """Return a text that can be the value of a header: printable ASCII."""
    text = parse_text(value)
    if not text.isascii():
        raise RefusedError("it contains a character that no header can carry")
    return text


BOOLEANS = {
    **dict.fromkeys(("true", "1", "t", "yes", "on"), True),
    **dict.fromkeys(("false", "0", "f", "no", "off"), False),
}


def parse_boolean(value: object) -> bool:
    """Return a boolean given as one or as one of the words of BOOLEANS, any letter case (behaviour: Odd values)."""
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.strip().lower() not in BOOLEANS:
        raise RefusedError
    return BOOLEANS[value.strip().lower()]


def whole_number(value: object) -> int:
    """Return an integer given as one or as decimal digits."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    digits = value.strip() if isinstance(value, str) else ""
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", digits):
        raise RefusedError
    return int(digits)


def integer(low: int, high: int = LARGEST, metavar: str = "NUMBER", what: str = "an integer", *, or_none: bool = False) -> Kind:
    """Return the kind of the whole numbers from `low` to `high`, and with `or_none` of 0, which is none."""

    def parse(value: object) -> int:
        number = whole_number(value)
        if not low <= number <= high and (number or not or_none):
            raise RefusedError
        return number

    return Kind(f"{'0, or ' * or_none}{what} from {low} to {high}", metavar, parse)


MOST_WORKERS = 256


def parse_workers(value: object) -> int:
    """Return a number of processes. `auto` means one for each processor that this process may use."""
    if isinstance(value, str) and value.strip().lower() == AUTO:
        from flagsvc.core.control_groups import processors

        return min(processors(), MOST_WORKERS)
    number = whole_number(value)
    if not 1 <= number <= MOST_WORKERS:
        raise RefusedError
    return number


UNITS = {"": 1, "b": 1, "kb": 1024, "mb": 1024 * 1024}


def parse_size(value: object, least: int = 1) -> int:
    """Return a number of bytes, given as such or with kB or MB behind it (1 kB is 1024 bytes)."""
    if not isinstance(value, str):
        number = whole_number(value)
    else:
        found = re.fullmatch(r"([0-9]{1,12}) ?([kKmM]?[bB]?)", value.strip())
        if not found or found[2].lower() not in UNITS:
            raise RefusedError
        number = int(found[1]) * UNITS[found[2].lower()]
    if not least <= number <= LARGEST:
        raise RefusedError
    return number


def show_size(size: int | None) -> str:
    """Return a number of bytes in the largest unit that divides it; a dash where there is none."""
    if size is None:
        return "-"
    if size == 0:
        return "0"
    for unit, factor in (("MB", UNITS["mb"]), ("kB", UNITS["kb"])):
        if size % factor == 0:
            return f"{size // factor} {unit}"
    return str(size)


def choice(words: tuple[str, ...], aliases: Mapping[str, str]) -> Kind:
    """Return the kind of one of `words`, any letter case; `aliases` are other spellings that are understood."""

    def parse(value: object) -> str:
        word = parse_text(value).lower()
        word = aliases.get(word, word)
        if word not in words:
            raise RefusedError(nearest(word, words))
        return word

    return Kind(f"one of {', '.join(words)}", "WORD", parse, words=words)


def choices(words: tuple[str, ...]) -> Kind:
    """Return the kind of a list of `words`, any letter case."""
    listed = ", ".join(words)
    return several(choice(words, {}).parse, f"some of {listed}, with commas between")


def nearest(name: str, known: Iterable[str] | Mapping[str, str]) -> str:
    """Return the question `did you mean …?` with the nearest known name, or the empty text if no name is near."""
    return ask_for(nearest_name(name, known))


def ask_for(name: str) -> str:
    """Return the question whether a name was meant; the empty text for the empty name."""
    return name and f"did you mean `{name}`?"


def nearest_name(name: str, known: Iterable[str] | Mapping[str, str], cutoff: float = 0.7) -> str:
    """Return the nearest known name, empty if none is `cutoff` (to 1) near. Of a mapping, compare the keys, return the value."""
    from difflib import get_close_matches

    names = {item.lower(): item for item in known}
    found = get_close_matches(name.lower(), names, n=1, cutoff=cutoff) if len(name) <= LONGEST_NEAR else []
    if not found:
        return ""
    match = names[found[0]]
    return known[match] if isinstance(known, Mapping) else match


def split(value: object) -> list[object]:
    """Return the items of a list. A text is cut at commas and line ends; blanks around items and empty items are dropped."""
    if isinstance(value, str):
        return [item.strip() for item in re.split(r"[,\r\n]", value) if item.strip()]
    if isinstance(value, bytes | Mapping) or not isinstance(value, Iterable):
        raise RefusedError
    return list(value)


def several(parse: Callable[[object], str], expects: str, metavar: str = "LIST") -> Kind:
    """Return the kind of a list of texts. `parse` reads each text, and duplicates are dropped."""

    def parse_all(value: object) -> tuple[str, ...]:
        items = split(value)
        if not all(isinstance(item, str) for item in items):
            raise RefusedError("every item must be a text")
        return tuple(dict.fromkeys(parse(item) for item in items if not is_blank(item)))

    return Kind(expects, metavar, parse_all)


def secret(kind: Kind) -> Kind:
    """Return `kind` with its values masked wherever they would be shown."""
    return kind._replace(safe=mask, echo=unquoted)


def mask(value: str | tuple[str, ...] | None) -> object:
    """Return the text that replaces a secret. Only the number of secrets in a list remains visible."""
    return tuple("***" for _ in value) if isinstance(value, tuple) else value and "***"


def parse_tags(value: object) -> tuple[tuple[str, str], ...]:
    """Return tag filters as (name, value) pairs, from `name:value` texts cut at their first colon, pairs or a mapping."""
    items = value.items() if isinstance(value, Mapping) else split(value)
    return tuple(dict.fromkeys(_tag(item) for item in items))


def _tag(item: object) -> tuple[str, str]:
    """Return one tag filter. It needs a name and a value."""
    pair = item.partition(":")[::2] if isinstance(item, str) else item
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        raise RefusedError("a tag is a name and a value")
    name, value = parse_text(pair[0]), parse_text(pair[1])
    if not name or not value:
        raise RefusedError("a tag has a name and a value, with a colon between them")
    return name, value


def show_tags(tags: tuple[tuple[str, str], ...]) -> str:
    """Return tag filters as text."""
    return as_text(tuple(f"{name}:{value}" for name, value in tags))


JAVASCRIPT = (".js", ".cjs", ".mjs", ".ts")


def extension_files(exported: str, guide: str) -> Kind:
    """Return the kind of a list of Python files, or in code of objects, that extend the proxy.

    A JavaScript file is refused, and the message says what to do: it must be ported to Python (behaviour: Odd values).
    """

    def one(item: object) -> object:
        if isinstance(item, int | float | Mapping | list):
            raise RefusedError
        if not isinstance(item, str | os.PathLike):
            return item
        path = parse_text(str(item))
        if path.lower().endswith(JAVASCRIPT):
            raise RefusedError(f"a JavaScript file must be ported to Python, as a list `{exported}`: see {guide}")
        return path

    def parse(value: object) -> tuple[object, ...]:
        items = [value] if isinstance(value, os.PathLike) else split(value)
        return tuple(one(item) for item in items if not is_blank(item))

    return Kind("paths of Python files (.py)", "FILES", parse, name_types, relative_to=paths_in)


def name_types(items: tuple[object, ...]) -> tuple[str, ...]:
    """Return paths as they are, and objects by their type, because their repr might contain secrets."""
    return tuple(item if isinstance(item, str) else str(name_type(item)) for item in items)


def name_type(value: object) -> object:
    """Return an object given in code by its type."""
    return None if value is None else f"({type(value).__name__})"


def parse_logger(value: object) -> object:
    """Return a logger like the standard library's or structlog's. Raises RefusedError if it lacks a method for a level."""
    methods = (("debug",), ("info",), ("warning", "warn"), ("error",))
    for names in methods:
        if not any(callable(getattr(value, name, None)) for name in names):
            raise RefusedError(f"it has no method `{names[0]}`")
    return value


def parse_object(value: object) -> object:
    """Return an object given in code as it is. Raises RefusedError for a text or a number."""
    if isinstance(value, str | bytes | int | float):
        raise RefusedError
    return value


BOOLEAN = Kind("true or false", "BOOL", parse_boolean, words=("true", "false"))
TEXT = Kind("a text", "TEXT", parse_text)
ENVIRONMENT = TEXT._replace(parse=parse_environment)
TEXTS = several(parse_text, "a list of texts, with commas between")
SIZE = Kind("a number of bytes from 1, such as 65536 or 64 kB", "SIZE", parse_size, show=show_size)
SIZE_OR_NONE = Kind("a number of bytes from 0, such as 65536 or 64 kB", "SIZE", partial(parse_size, least=0), show=show_size)
MILLISECONDS = integer(0, metavar="MS")
SECONDS = integer(1, 86_400, metavar="SECONDS")
WORKERS = Kind(f"`auto`, or an integer from 1 to {MOST_WORKERS}", "NUMBER", parse_workers, words=(AUTO,))
PORT = integer(0, 65535, "PORT", "a port number")
LOG_LEVEL = choice(("debug", "info", "warn", "error", "fatal"), {"warning": "warn", "critical": "fatal"})
HASH_ENCODING = choice(("low-byte", "utf8"), {"utf-8": "utf8"})
TAGS = Kind("tag filters such as team:web,area:cart", "TAGS", parse_tags, show=show_tags)
SECRET = secret(Kind("printable ASCII text", "TOKEN", parse_header_value))
SECRETS = secret(TEXTS)
PATH = TEXT._replace(expects="the path of a file", metavar="FILE", relative_to=path_in)
PASSWORD = secret(TEXT._replace(metavar="PASSWORD"))
TLS_VERSION = choice(("1.2", "1.3"), {"tls1.2": "1.2", "tlsv1.2": "1.2", "tls1.3": "1.3", "tlsv1.3": "1.3"})
LOGGER = Kind("a logger of the standard library's or structlog's shape", "", parse_logger, name_type)
OBJECT = Kind("an object", "", parse_object, name_type)


Path = tuple[str, ...]
"""The keys that lead to an object."""


class JsonObject(dict[str, Any]):
    """An object of JSON. `repeated` has the keys that come more than once in it."""

    repeated: Path = ()


def read_json(text: str) -> object:
    """Return the value of a JSON text. Raises ValueError with what is wrong, and the line and the column.

    The position and the reason are shown, and nothing of the text (behaviour: Several environments).
    """
    import json  # most processes have no option in JSON

    try:
        return json.loads(text, object_pairs_hook=_json_object)
    except json.JSONDecodeError as error:
        reason = re.sub(r"( starting)? at$|:.*", "", error.msg)
        place = f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"{reason[:1].lower()}{reason[1:]} ({place})") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except ValueError:
        raise ValueError("a number is too long") from None


def _json_object(pairs: Sequence[tuple[str, Any]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) < len(pairs):
        times = Counter(key for key, _ in pairs)
        found.repeated = tuple(key for key in found if times[key] > 1)
    return found


def repeated_keys(value: object) -> Iterator[tuple[Path, str]]:
    """Yield each key that comes more than once in an object of a value that was read, behind the keys that lead there."""
    waiting: list[tuple[Path, object]] = [((), value)]
    while waiting:
        path, found = waiting.pop()
        if isinstance(found, JsonObject):
            yield from ((path, key) for key in found.repeated)
            waiting += [((*path, key), each) for key, each in reversed(found.items())]
        elif isinstance(found, list):
            waiting += [(path, each) for each in found]
