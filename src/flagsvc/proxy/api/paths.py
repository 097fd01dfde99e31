"""The spelling of paths. Case and a slash at the end do not matter, and in some dialects neither do doubled slashes."""

from __future__ import annotations

from flagsvc.proxy.api.query import unquote


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
