"""Warnings and errors of `flagsvc proxy` and `flagsvc server` before they start."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from flagsvc.cli.error_output import JsonError
from flagsvc.core.errors import FlagsvcError
from flagsvc.core.log import build_logger
from flagsvc.core.version import INTERPRETED, INTERPRETED_WARNING, engine_form
from flagsvc.settings.places import Resolved


def log_warnings(resolved: Resolved) -> None:
    """Log warnings about the options, also when they are rejected, and a warning if the engine is interpreted."""
    logger = build_logger(level=resolved.values["logLevel"], as_json=resolved.values["useJsonLogger"])
    for text in resolved.warnings:
        logger.warn(f"configuration: {text}")
    if engine_form() == INTERPRETED and not resolved.problems:
        logger.warn(INTERPRETED_WARNING)


@contextmanager
def report_errors_as_json(wanted: bool) -> Iterator[None]:
    """Wrap our errors so that they are printed as lines of JSON, if `wanted`: the program then logs JSON too."""
    try:
        yield
    except FlagsvcError as error:
        if not wanted:
            raise
        raise JsonError(error) from error
