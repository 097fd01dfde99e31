"""How far a connection is on its way to its end. Compiled."""

from __future__ import annotations

from typing import Final

OPEN: Final = 0
LAST: Final = 1
"""The last answer is written; what is left is to end well."""
LINGER: Final = 2
"""No more is written; what the caller still sends is thrown away, so that it gets to read the answer."""
CLOSED: Final = 3
