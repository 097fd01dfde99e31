"""`file:` URLs, which sources, bootstrap and stores take."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from flagsvc.core.errors import ConfigurationError


def is_file_url(url: str) -> bool:
    """Return whether a URL names a file of this machine."""
    return url[:5].lower() == "file:"


def file_path(url: str) -> Path:
    """Return the path a `file:` URL names; raises ConfigurationError when it names another host or nothing."""
    parts = urlsplit(url)
    if parts.netloc.lower() not in ("", "localhost") or not parts.path:
        raise ConfigurationError([f"`{url}` does not name a file of this machine; write `file:///folder/name`"])
    return Path(unquote(parts.path))
