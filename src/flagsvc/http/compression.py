"""Whether an answer goes out compressed, and compressing it (behaviour: Compression). Compiled."""

from __future__ import annotations

from typing import Final

from isal import isal_zlib
from mypy_extensions import i64

SMALLEST: Final = 1024
"""Bytes from which compression is worth its cost."""
SHORT: Final = 5000
"""Bytes below which igzip's level 0 is as good: either level's result leaves in one segment (decision 0026)."""
GZIP_FORMAT: Final = 31
MAX_REMEMBERED: Final = 256
LONGEST_REMEMBERED: Final = 128
"""Bytes of a header; together these bound what callers can make the process remember."""

PLAIN: Final = 0
GZIP: Final = 1
GZIP_ALWAYS: Final = 2


class Negotiator:
    """Reads Accept-Encoding; remembers what the few texts that browsers send mean, within a bound."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}

    def wants_gzip(self, accept: bytes, size: i64) -> bool:
        """Return whether a body of `size` bytes goes out as gzip to a caller with this Accept-Encoding."""
        choice = self.known.get(accept)
        if choice is None:
            choice = negotiate(accept)
            if len(self.known) < MAX_REMEMBERED and len(accept) <= LONGEST_REMEMBERED:
                self.known[accept] = choice
        return choice == GZIP_ALWAYS or (choice == GZIP and size >= SMALLEST)


def negotiate(accept: bytes) -> int:
    """Return what an Accept-Encoding header asks for: PLAIN, GZIP where it pays, or GZIP_ALWAYS where plain is refused."""
    weights: dict[str, float] = {}
    for item in accept.decode("latin-1").lower().split(","):
        name, _, parameters = item.partition(";")
        weights[name.strip()] = weight(parameters)
    other = weights.get("*", 0.0)
    gzip = weights.get("gzip", weights.get("x-gzip", other))
    plain = weights.get("identity", 0.0 if "*" in weights and other == 0.0 else -1.0)
    if gzip <= 0.0 or plain > gzip:
        return PLAIN
    return GZIP_ALWAYS if plain == 0.0 else GZIP


def weight(parameters: str) -> float:
    """Return the q-value among the parameters of an item: 1 without one, 0 for one that is no number from 0 to 1."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return quality(value.strip())
    return 1.0


def quality(text: str) -> float:
    """Return a q-value as a number; 0 for a text that is none."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return 0.0
    value = float(text)
    return value if value <= 1.0 else 0.0


def gzip(body: bytes) -> bytes:
    """Return the body in gzip format; the same body gives the same bytes."""
    level = 0 if len(body) < SHORT else 1
    packed: bytes = isal_zlib.compress(body, level, GZIP_FORMAT)
    return packed
