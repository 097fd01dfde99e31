"""Every page of the proxy."""

from __future__ import annotations

from flagsvc.proxy.pages import changes, config, status
from flagsvc.proxy.pages.access import Access
from flagsvc.proxy.pages.flags import flag_rows
from flagsvc.proxy.pages.page import PageRow
from flagsvc.proxy.pages.scene import Scene
from flagsvc.proxy.pages.sign_in import sign_in_rows
from flagsvc.proxy.pages.stream import stream_rows
from flagsvc.proxy.pages.traffic import traffic_rows
from flagsvc.proxy.pages.trying import try_rows
from flagsvc.proxy.pages.unfolding import UnfoldedConfigurations


def make_rows(scene: Scene, access: Access) -> tuple[PageRow, ...]:
    """Return the rows of all pages."""
    configurations = UnfoldedConfigurations()
    return (
        *status.ROWS,
        *flag_rows(configurations),
        *try_rows(configurations, scene),
        *traffic_rows(scene),
        *changes.ROWS,
        *config.ROWS,
        *stream_rows(scene, access),
        *sign_in_rows(access),
    )
