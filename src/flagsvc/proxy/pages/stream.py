"""The event stream of live pages: each second `second`, and `revision` if an environment serves or knows something else."""

from __future__ import annotations

from typing import Final

from flagsvc.http.messages import HttpError, Response
from flagsvc.pages.live import EventStreams, event, respond_live
from flagsvc.proxy.pages.access import Access
from flagsvc.proxy.pages.page import PageCall, PageRow
from flagsvc.proxy.pages.scene import Scene, ShownEnvironment

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

    async def show(call: PageCall) -> Response:
        if call.wants_data:
            raise HttpError(404, "there is no such page", [])
        head = call.head
        return respond_live(head.request.method, streams, lambda: access.may_see_all(head), access.viewer_of(head))

    return (PageRow("/stream", "", show),)
