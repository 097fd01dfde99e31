"""The lines on standard output: that the process listens, is ready, stops. They are shown at any logLevel.

They are text for a person, or JSON where the log is (useJsonLogger).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from time import time
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from flagsvc.core.log import json_line

NO_FIELDS: Mapping[str, object] = MappingProxyType({})


class Notice(NamedTuple):
    """What happened, and fields for programs. `text` is what a person reads, where that is more than the event."""

    event: str
    fields: Mapping[str, object] = NO_FIELDS
    text: str = ""


Say: TypeAlias = Callable[[Notice], object]
"""Prints a notice."""


def make_say(*, as_json: bool) -> Say:
    """Return what prints notices, each as text or as one line of JSON."""
    return say_as_json if as_json else say


def say(notice: Notice) -> None:
    """Print a notice for a person."""
    show(notice.text or notice.event)


def say_as_json(notice: Notice) -> None:
    """Print a notice as a line of JSON."""
    show(json_line(time(), "info", notice.event, notice.fields))


def say_all(notices: Iterable[Notice], say: Say) -> None:
    """Print several notices."""
    for each in notices:
        say(each)


def show(line: str) -> None:
    """Print a line; that it is not read (any more) is no reason to end."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
