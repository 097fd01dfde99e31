"""Says where in a seed file the entry is that the database does not take."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flagsvc.core.errors import SeedError
from flagsvc.server.store.errors import CallerError


@contextmanager
def refused_at(place: str) -> Iterator[None]:
    """Turn the refusal of a store function into a SeedError that names a place in the file."""
    try:
        yield
    except CallerError as error:
        reasons = "; ".join(each["message"].rstrip(".") for each in error.details)
        raise SeedError([f"{place}: {reasons}"]) from None
