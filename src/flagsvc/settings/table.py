"""The options, one row each: the loader, `--help`, the reference page, the masked dump and the tests read these rows."""

from __future__ import annotations

from flagsvc.settings.added import ADDED
from flagsvc.settings.fleet import STORED
from flagsvc.settings.limits import LIMITS
from flagsvc.settings.option import Option, Section
from flagsvc.settings.running import RUNNING
from flagsvc.settings.secure import SECURE
from flagsvc.settings.specified import SPECIFIED

ROWS = (*SPECIFIED, *ADDED, *STORED, *RUNNING, *LIMITS, *SECURE)
OPTIONS: tuple[Option, ...] = tuple(option for section in Section for option in ROWS if option.section is section)
"""Every option, section by section; in each the specification's first, in its order."""

BY_NAME = {option.name: option for option in OPTIONS}
BY_FIELD = {option.field: option for option in OPTIONS}

MOST_USED = (
    *("flagsvcUrl", "flagsvcApiToken", "clientKeys", "refreshInterval", "storage", "port", "trustProxy", "cors.origin"),
    *("workers", "logLevel"),
)
"""The options that most deployments look at: README.md and the short help show them."""
