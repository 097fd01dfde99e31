"""Every page of the proxy, with the options in effect and the event stream of live pages.

Options are shown as `flagsvc config` prints them: secrets are masked. The stream tells `second` each second, and `revision` if an
environment serves or knows something else.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from flagsvc.http.answers import Answer
from flagsvc.http.messages import HttpError
from flagsvc.pages.live import HEADERS, EventStreams, event
from flagsvc.proxy.pages import status
from flagsvc.proxy.pages.access import Access, sign_in_rows
from flagsvc.proxy.pages.flags import flag_rows
from flagsvc.proxy.pages.page import PageCall, PageRow, Scene, ShownEnvironment
from flagsvc.proxy.pages.traffic import traffic_rows
from flagsvc.proxy.pages.trying import try_rows
from flagsvc.proxy.pages.unfolding import UnfoldedConfigurations
from flagsvc.settings.environments import TABLE, rows_for
from flagsvc.settings.load_environments import part_of
from flagsvc.settings.option import Option
from flagsvc.settings.places import Resolved
from flagsvc.settings.render import DEFAULT, is_shown, row_text
from flagsvc.settings.table import OPTIONS


def make_rows(scene: Scene, access: Access) -> tuple[PageRow, ...]:
    configurations = UnfoldedConfigurations()
    return (
        *status.ROWS,
        *flag_rows(configurations),
        *try_rows(configurations, scene),
        *traffic_rows(scene),
        status.CHANGES_ROW,
        CONFIG_ROW,
        *stream_rows(scene, access),
        *sign_in_rows(access),
    )


async def show_config(call: PageCall) -> Answer:
    """Return the options as they were read at the start."""
    resolved = call.scene.resolved
    if resolved is None:
        return Answer({"read": False, "options": [], "environments": [], "warnings": []})
    environments = []
    for name, values in resolved.values.get(TABLE, ()):
        part = part_of(resolved, name, values)
        environments.append({"name": name, "options": await describe_options(call, rows_for(name), part)})
    options = await describe_options(call, OPTIONS, resolved)
    return Answer({"read": True, "options": options, "environments": environments, "warnings": list(resolved.warnings)})


async def describe_options(call: PageCall, rows: Iterable[Option], resolved: Resolved) -> list[dict[str, Any]]:
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


CONFIG_ROW = PageRow("/config", "config.html", show_config)


SECOND_S: Final = 1.0


def fingerprint(shown: ShownEnvironment) -> tuple[object, ...]:
    """Return what is different after a change of an environment."""
    snapshot, revisions = shown.holder.current, shown.changes.revisions
    compared = bool(revisions) and revisions[-1].is_compared
    return shown.name, shown.holder.state, None if snapshot is None else snapshot.revision, compared


class News:
    """What the streams tell each second."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._last: list[tuple[object, ...]] = []

    def tell(self) -> bytes:
        """Return the events of a second."""
        found = [fingerprint(each) for each in self._scene.list_environments().values()]
        changed, self._last = found != self._last, found
        return (event("revision", {}) if changed else b"") + event("second", {})


def stream_rows(scene: Scene, access: Access) -> tuple[PageRow, ...]:
    """Return the row of the stream. It ends with the session or the key that opened it."""
    streams = EventStreams(News(scene).tell, SECOND_S)

    async def show(call: PageCall) -> Answer:
        if call.wants_data:
            raise HttpError(404, "there is no such page", [])
        head = call.head
        return Answer(headers=HEADERS, parts=streams.make(lambda: access.may_see_all(head), access.viewer_of(head)))

    return (PageRow("/stream", "", show),)
