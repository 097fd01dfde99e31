"""Config: the options in effect and where each came from, as `flagsvc config` prints them. Secrets are masked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flagsvc.proxy.pages.page import PageCall, PageRow, Shown
from flagsvc.settings.environments import TABLE, rows_for
from flagsvc.settings.load_environments import part_of
from flagsvc.settings.option import Option
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import DEFAULT, is_shown, row_text
from flagsvc.settings.table import OPTIONS


async def show(call: PageCall) -> Shown:
    """Return the options as they were read at the start."""
    resolved = call.scene.resolved
    if resolved is None:
        return Shown({"read": False, "options": [], "environments": [], "warnings": []})
    environments = []
    for name, values in resolved.values.get(TABLE, ()):
        part = part_of(resolved, name, values)
        environments.append({"name": name, "options": await describe(call, rows_for(name), part)})
    options = await describe(call, OPTIONS, resolved)
    return Shown({"read": True, "options": options, "environments": environments, "warnings": list(resolved.warnings)})


async def describe(call: PageCall, rows: Iterable[Option], resolved: Resolved) -> list[dict[str, Any]]:
    """Return options as text, in slices."""
    found = []
    for row in rows:
        if is_shown(row, resolved):
            name, value, source = row_text(row, resolved)
            text = call.scene.secrets.mask(value)
            found.append(
                {
                    "name": name,
                    "section": row.section.value,
                    "value": text,
                    "source": source,
                    "isSet": source != DEFAULT,
                }
            )
            await call.slices.rest()
    return found


ROWS = (PageRow("/config", "config.html", show),)
