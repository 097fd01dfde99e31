"""The environments of a runtime, for tests that look inside."""

from __future__ import annotations

from flagsvc import ProxyApp
from flagsvc.proxy.runtime import EnvironmentRuntime, ProxyRuntime


def only(running: ProxyRuntime | ProxyApp) -> EnvironmentRuntime:
    """Return the environment of a runtime, or of an application, that has a single one."""
    runtime = running._runtime if isinstance(running, ProxyApp) else running
    [environment] = runtime.environments
    return environment
