"""What `flagsvc proxy` and `flagsvc server` say before they start."""

from __future__ import annotations

from flagsvc.log import build_logger
from flagsvc.settings.load import Loaded
from flagsvc.settings.server import LoadedServer
from flagsvc.version import INTERPRETED, SLOWER, form


def warn(loaded: Loaded | LoadedServer) -> None:
    """Log, as the options want it, what is odd in them, and that the engine is interpreted where it is."""
    logger = build_logger(level=loaded.options.log_level, as_json=loaded.options.use_json_logger)
    for text in loaded.warnings:
        logger.warn(f"configuration: {text}")
    if form() == INTERPRETED:
        logger.warn(SLOWER)
