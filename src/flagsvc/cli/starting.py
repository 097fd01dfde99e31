"""What `flagsvc proxy` and `flagsvc server` say before they start, and how they tell why they do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from flagsvc.cli.complaints import JsonError
from flagsvc.errors import FlagsvcError
from flagsvc.log import build_logger
from flagsvc.settings.load import Loaded
from flagsvc.settings.parse import BOOLEANS, is_blank
from flagsvc.settings.server import LoadedServer
from flagsvc.settings.table import BY_NAME
from flagsvc.version import INTERPRETED, SLOWER, form


def warn(loaded: Loaded | LoadedServer) -> None:
    """Log, as the options want it, what is odd in them, and that the engine is interpreted where it is."""
    logger = build_logger(level=loaded.options.log_level, as_json=loaded.options.use_json_logger)
    for text in loaded.warnings:
        logger.warn(f"configuration: {text}")
    if form() == INTERPRETED:
        logger.warn(SLOWER)


@contextmanager
def errors_as_json(wanted: bool) -> Iterator[None]:
    """Have our errors told as lines of JSON, where that is `wanted`: the program's other lines are JSON too."""
    try:
        yield
    except FlagsvcError as error:
        if not wanted:
            raise
        raise JsonError(error) from error


def asks_for_json(environment: Mapping[str, str], flags: Mapping[str, str]) -> bool:
    """Return whether the flag, else a variable, asks for lines of JSON; for a time when options are not known, or wrong."""
    row = BY_NAME["useJsonLogger"]
    places = [flags.get(row.name), *(environment.get(each.name) for each in row.variables)]
    word = next((place for place in places if not is_blank(place)), None)
    return word is not None and BOOLEANS.get(word.strip().lower(), False)
