"""The options, one row each: the loader, `--help`, the reference page, the masked dump and the tests read these rows."""

from __future__ import annotations

from flagsvc.settings.added import ADDED
from flagsvc.settings.option import Option, Section
from flagsvc.settings.specified import SPECIFIED

OPTIONS: tuple[Option, ...] = tuple(
    option for section in Section for option in (*SPECIFIED, *ADDED) if option.section is section
)
"""Every option, section by section; in each the specification's first, in its order."""

BY_NAME = {option.name: option for option in OPTIONS}
BY_FIELD = {option.field: option for option in OPTIONS}
