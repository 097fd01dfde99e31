"""What `flagsvc proxy` and `flagsvc server` say before they start."""

from __future__ import annotations

from flagsvc.log import build_logger
from flagsvc.settings.load import Resolved
from flagsvc.version import INTERPRETED, SLOWER, form


def warn(resolved: Resolved) -> None:
    """Log, as the options want it, what is odd in them, also where they are refused; and that the engine is interpreted."""
    logger = build_logger(level=resolved.values["logLevel"], as_json=resolved.values["useJsonLogger"])
    for text in resolved.warnings:
        logger.warn(f"configuration: {text}")
    if form() == INTERPRETED and not resolved.problems:
        logger.warn(SLOWER)
