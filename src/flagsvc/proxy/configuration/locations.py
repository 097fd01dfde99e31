"""`file:` URLs, as sources, bootstrap and stores accept them."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit

from flagsvc.core.errors import ConfigurationError


def is_file_url(url: str) -> bool:
    return url[:5].lower() == "file:"


def file_path(url: str) -> Path:
    """Return the path of a `file:` URL. Raises ConfigurationError if the URL names another host or has no path."""
    parts = urlsplit(url)
    if parts.netloc.lower() not in ("", "localhost") or not parts.path:
        raise ConfigurationError([f"`{url}` does not name a file of this machine; write `file:///folder/name`"])
    return Path(unquote(parts.path))
