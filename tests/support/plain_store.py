"""A storage provider of a user, with plain methods."""

from __future__ import annotations


class PlainStore:
    """A provider whose methods are no coroutines. `data` has what is stored."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}

    def get(self, key: str) -> bytes | None:
        return self.data.get(key)

    def set(self, key: str, data: bytes) -> None:
        self.data[key] = data
