"""The lines of a backup: JSON under gzip, a header first, a count and a digest last (decision 0031).

The digest is the SHA-256 of all lines before the last one. It finds damage; it is no signature.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from hashlib import sha256
from typing import Any, BinaryIO, NamedTuple, TypeAlias

from flagsvc.core.errors import BackupError
from flagsvc.settings.kinds import printable

Json: TypeAlias = dict[str, Any]
FORMAT = "flagsvc backup"
VERSION = 1
"""The version of the format. Another version of the schema is no other format."""
LEVEL = 6
MIB = 1024 * 1024
LONGEST = 256 * MIB
"""The most bytes of a line. The largest rows are events: of an import, or of a segment with many users."""
HEAVIEST = 1024 * MIB
"""The most bytes that the values of a line take in memory, as `weight_of` estimates them."""
PIECE = MIB
"""The most bytes of a line that are unpacked before its bounds are checked again."""
LARGEST = 2**62
"""The largest number of a header, so that the database can give out more ids and revisions after it."""
NO_BACKUP = "this is no backup of flagsvc: "
NO_HEADER = f"{NO_BACKUP}its first line is no header of one"
NOT_WHOLE = "the backup is not whole: it ends before its last line"
ALTERED = "the backup is damaged or was altered: "


@dataclass(frozen=True)
class Header:
    """What a backup says of itself.

    `schema` is the version of its tables, and `program` the version of flagsvc. `created` is the time in UTC, and `revision` the
    revision of the database. `sequences` are the last numbers that the database has given out, by table.
    """

    schema: str
    program: str
    created: str
    revision: int
    sequences: Mapping[str, int]


class Row(NamedTuple):
    """A row of a backup: the number of its line, its table, its values by column, and what they weigh in memory (bytes)."""

    line: int
    table: str
    values: Json
    weight: int = 0


def weight_of(line: bytes) -> int:
    """Return about how many bytes the values of a part of a line take in memory, counted without reading them.

    A list or an object takes a few hundred, a small value some dozens. Commas within texts count, too.
    """
    characters = len(line) if line.isascii() else 4 * len(line)
    return characters + 64 * line.count(b",") + 256 * (line.count(b"[") + line.count(b"{"))


class LineWriter:
    """Writes the lines of a backup into a binary file. `finish` writes the last one; the file stays open."""

    def __init__(self, sink: BinaryIO, header: Header) -> None:
        self._zipped = gzip.GzipFile("", "wb", LEVEL, sink, mtime=0)
        self._digest = sha256()
        self._count = 0
        self._write({"format": FORMAT, "version": VERSION} | asdict(header))

    def write_row(self, table: str, values: Json) -> None:
        """Write a row. Raises BackupError where it is too long to be read again."""
        self._write({"table": table, "row": values})

    def finish(self) -> None:
        """Write the count and the digest of the lines."""
        self._write({"lines": self._count, "sha256": self._digest.hexdigest()})
        self._zipped.close()

    def _write(self, value: Json) -> None:
        line = json.dumps(value, separators=(",", ":")).encode() + b"\n"
        too_much = _excess(len(line), weight_of(line))
        if too_much:
            raise BackupError(f"a row of `{value.get('table')}` {too_much}, the most that a backup takes")
        self._zipped.write(line)
        self._digest.update(line)
        self._count += 1


class LineReader:
    """Reads a backup from its beginning: `header`, then `rows`, which checks at its end that nothing is missing or altered.

    Raises BackupError.
    """

    def __init__(self, source: BinaryIO) -> None:
        source.seek(0)
        self._zipped = gzip.GzipFile(fileobj=source, mode="rb")
        self._digest = sha256()
        self._count = 0
        self._weight = 0
        self.header = self._read_header()

    def rows(self) -> Iterator[Row]:
        """Yield every row. Raises BackupError after the last row if the lines were altered."""
        while "table" in (value := self._next()):
            table, values = value["table"], value.get("row")
            if not isinstance(table, str) or not isinstance(values, dict):
                raise BackupError(f"line {self._count} of the backup: expected a row of a table")
            yield Row(self._count, table, values, self._weight)
        if self._read():
            raise BackupError(f"{ALTERED}there are lines after its last one")

    def _next(self) -> Json:
        """Return the value of the next line, and check it if it is the last one."""
        before, digest = self._count, self._digest.hexdigest()
        value = self._read()
        if value is None:
            raise BackupError(NOT_WHOLE)
        if "table" not in value and value != {"lines": before, "sha256": digest}:
            raise BackupError(f"{ALTERED}its lines have another digest than its last line says")
        return value

    def _read(self) -> Json | None:
        """Return the object of the next line; None at the end."""
        line = self._read_line()
        if not line:
            return None
        self._digest.update(line)
        self._count += 1
        try:
            value = json.loads(line, parse_constant=_refuse_constant)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise BackupError(f"{ALTERED}line {self._count} is no JSON object" if self._count > 1 else NO_HEADER)
        return value

    def _read_line(self) -> bytes:
        """Return the next line; nothing at the end. No more of it is unpacked than its bounds allow."""
        pieces: list[bytes] = []
        length = self._weight = 0
        while not pieces or (pieces[-1] and not pieces[-1].endswith(b"\n")):
            pieces.append(self._unpack())
            length += len(pieces[-1])
            self._weight += weight_of(pieces[-1])
            too_much = _excess(length, self._weight)
            if too_much:
                raise BackupError(f"{ALTERED}line {self._count + 1} {too_much}")
        if length and not pieces[-1]:
            raise BackupError(f"{ALTERED}line {self._count + 1} has no end")
        return b"".join(pieces)

    def _unpack(self) -> bytes:
        """Return the next piece of a line; nothing at the end."""
        try:
            return self._zipped.readline(PIECE)
        except EOFError:
            raise BackupError(NOT_WHOLE) from None
        except (OSError, zlib.error) as error:
            if self._count == 0 and isinstance(error, gzip.BadGzipFile):
                raise BackupError(f"{NO_BACKUP}it is not compressed with gzip") from None
            raise BackupError(f"{ALTERED}it cannot be decompressed after line {self._count}") from None

    def _read_header(self) -> Header:
        value = self._read()
        if value is None or value.get("format") != FORMAT:
            raise BackupError(NO_HEADER)
        if value.get("version") != VERSION:
            shown = printable(str(value.get("version")))
            raise BackupError(f"the backup has the format {shown}, and this version of flagsvc reads {VERSION}")
        return _header_of(value)


def _excess(length: int, weight: int) -> str:
    """Return in which way a line is too much, by its bytes and what its values weigh; empty if it is not."""
    if length > LONGEST:
        return f"has more than {LONGEST // MIB} MiB"
    return f"takes more than {HEAVIEST // MIB} MiB of memory" if weight > HEAVIEST else ""


def _refuse_constant(name: str) -> None:
    raise ValueError(name)  # NaN and Infinity are not JSON


def _header_of(value: Json) -> Header:
    """Return the header of a first line. Raises BackupError where it has another form."""
    kinds = {"schema": str, "program": str, "created": str, "revision": int, "sequences": dict}
    found: Json = {each.name: value.get(each.name) for each in fields(Header)}
    wrong = [name for name, kind in kinds.items() if not isinstance(found[name], kind)]
    numbers = {"sequences": found["sequences"], "revision": {"": found["revision"]}}
    wrong = wrong or [name for name, given in numbers.items() if not all(map(_is_number, given.values()))]
    wrong = wrong or ([] if _is_time(found["created"]) else ["created"])
    if wrong:
        raise BackupError(f"line 1 of the backup: `{wrong[0]}` is missing, or is not understood")
    return Header(**found)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and 0 <= value <= LARGEST


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
