"""What `flagsvc proxy` and `flagsvc server` say before they start, and how they tell why they do not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flagsvc.cli.complaints import JsonError
from flagsvc.core.errors import FlagsvcError
from flagsvc.core.log import build_logger
from flagsvc.core.version import INTERPRETED, INTERPRETED_WARNING, engine_form
from flagsvc.settings.load import Resolved


def warn(resolved: Resolved) -> None:
    """Log, as the options want it, what is odd in them, also where they are refused; and that the engine is interpreted."""
    logger = build_logger(level=resolved.values["logLevel"], as_json=resolved.values["useJsonLogger"])
    for text in resolved.warnings:
        logger.warn(f"configuration: {text}")
    if engine_form() == INTERPRETED and not resolved.problems:
        logger.warn(INTERPRETED_WARNING)


@contextmanager
def errors_as_json(wanted: bool) -> Iterator[None]:
    """Have our errors told as lines of JSON, where that is `wanted`: the program's other lines are JSON too."""
    try:
        yield
    except FlagsvcError as error:
        if not wanted:
            raise
        raise JsonError(error) from error
