"""The environments of a runtime, for tests that look inside."""

from __future__ import annotations

from flagsvc import ProxyApp
from flagsvc.proxy.application import ProxyRuntime
from flagsvc.proxy.generations.feeds import UpstreamSync


def feeds(running: ProxyRuntime | ProxyApp) -> dict[str, UpstreamSync]:
    """Return the upstream sides of the environments that answer, by name."""
    runtime = running._runtime if isinstance(running, ProxyApp) else running
    return {each.name: each.feed for each in runtime.generations if isinstance(each.feed, UpstreamSync)}


def only(running: ProxyRuntime | ProxyApp) -> UpstreamSync:
    """Return the upstream side of a runtime, or of an application, that has a single environment."""
    [feed] = feeds(running).values()
    return feed
