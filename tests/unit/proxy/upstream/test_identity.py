"""Who this proxy is towards the upstream."""

from __future__ import annotations

import platform
import uuid

from flagsvc.core.version import VERSION
from flagsvc.proxy.upstream.identity import SDK, SPEC_VERSION, Identity


def test_each_identity_has_a_connection_id_of_its_own() -> None:
    """Two applications in one process are two connections."""
    one, two = Identity("app", "i"), Identity("app", "i")
    assert uuid.UUID(one.connection_id) != uuid.UUID(two.connection_id)


def test_the_fields_that_payloads_repeat() -> None:
    """Names and versions, nothing else."""
    assert Identity("app", "instance", "c").fields() == {
        "appName": "app",
        "instanceId": "instance",
        "connectionId": "c",
        "platformName": "CPython",
        "platformVersion": platform.python_version(),
        "yggdrasilVersion": None,
        "specVersion": SPEC_VERSION,
    }


def test_the_sdk_names_the_running_version() -> None:
    """`flagsvc:VERSION`."""
    assert SDK.split(":") == ["flagsvc", VERSION]
