"""Whether an answer goes out compressed, and compressing it (behaviour: Compression). Compiled."""

from __future__ import annotations

from typing import Final

from isal import isal_zlib
from mypy_extensions import i64

SMALLEST: Final = 1024
"""The smallest body, in bytes, for which compression is worth its cost."""
SHORT: Final = 5000
"""Below this many bytes igzip's level 0 is as good: the result of either level fits in one segment (decision 0006)."""
GZIP_FORMAT: Final = 31
MAX_REMEMBERED: Final = 256
LONGEST_REMEMBERED: Final = 128
"""The most bytes of a remembered header. Both limits together bound the memory that callers can use."""

PLAIN: Final = 0
GZIP: Final = 1
GZIP_ALWAYS: Final = 2


class Negotiator:
    """Reads Accept-Encoding. It remembers the results for the few texts that browsers send."""

    def __init__(self) -> None:
        self.known: dict[bytes, int] = {}

    def wants_gzip(self, accept: bytes, size: i64) -> bool:
        """Return whether to send a body of `size` bytes as gzip to a caller with this Accept-Encoding."""
        choice = self.known.get(accept)
        if choice is None:
            choice = negotiate(accept)
            if len(self.known) < MAX_REMEMBERED and len(accept) <= LONGEST_REMEMBERED:
                self.known[accept] = choice
        return choice == GZIP_ALWAYS or (choice == GZIP and size >= SMALLEST)


def negotiate(accept: bytes) -> int:
    """Return the choice of an Accept-Encoding header: PLAIN, GZIP for large bodies, or GZIP_ALWAYS if plain is refused."""
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
    """Return the q-value among the parameters of an item: 1 if there is none, 0 if it is not a number from 0 to 1."""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            return quality(value.strip())
    return 1.0


def quality(text: str) -> float:
    """Return a q-value as a number; 0 for an invalid text."""
    if not text.isascii() or not text.replace(".", "", 1).isdigit():
        return 0.0
    value = float(text)
    return value if value <= 1.0 else 0.0


def gzip(body: bytes) -> bytes:
    """Return the body in gzip format. Equal bodies give equal bytes."""
    level = 0 if len(body) < SHORT else 1
    packed: bytes = isal_zlib.compress(body, level, GZIP_FORMAT)
    return packed
