"""Notices on standard output: the process listens, is ready, stops. They are printed at every logLevel.

A notice is text for a person, or a line of JSON where the log is JSON (useJsonLogger).
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
    """An event, and fields for programs. `text` is what text output has where it differs from the event.

    `on_terminal` replaces it on a terminal. Only `on_terminal` may hold secrets: any other output may be kept as a log.
    """

    event: str
    fields: Mapping[str, object] = NO_FIELDS
    text: str = ""
    on_terminal: str = ""


NoticePrinter: TypeAlias = Callable[[Notice], object]
"""Prints a notice."""


def make_notice_printer(*, as_json: bool) -> NoticePrinter:
    """Return the function that prints a notice: as text, or as one line of JSON."""
    return print_notice_as_json if as_json else print_notice


def print_notice(notice: Notice) -> None:
    print_line((notice.on_terminal if sys.stdout.isatty() else "") or notice.text or notice.event)


def print_notice_as_json(notice: Notice) -> None:
    """Print a notice as a line of JSON. The field `always` says why a line of level info is there at any logLevel."""
    print_line(json_line(time(), "info", notice.event, {"always": True, **notice.fields}))


def print_notices(notices: Iterable[Notice], printer: NoticePrinter) -> None:
    for notice in notices:
        printer(notice)


def print_line(line: str) -> None:
    """Print a line. If the reader has closed the pipe, discard this line and all later ones instead of failing."""
    try:
        print(line, flush=True)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
