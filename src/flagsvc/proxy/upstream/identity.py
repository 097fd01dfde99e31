"""Who this proxy is towards the upstream: names, versions, nothing about end users.

The options flagsvcAppName and flagsvcInstanceId name it (specification: Options; behaviour: Registration; Privacy).
"""

from __future__ import annotations

import platform
import uuid
from dataclasses import dataclass, field

from flagsvc.core.version import VERSION

SDK = f"flagsvc:{VERSION}"
"""Our name and version, as `unleash-sdk` header and `sdkVersion` field."""
SPEC_VERSION = "6.1.0"
"""The version of the client specification this proxy passes."""


def new_connection_id() -> str:
    """Return a new id of one running proxy; a UUID."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Identity:
    """The names a proxy goes by: application, instance, and one connection id for as long as it runs."""

    app_name: str
    instance_id: str
    connection_id: str = field(default_factory=new_connection_id)

    def fields(self) -> dict[str, object]:
        """Return the fields that every payload towards the upstream repeats."""
        return {
            "appName": self.app_name,
            "instanceId": self.instance_id,
            "connectionId": self.connection_id,
            "platformName": platform.python_implementation(),
            "platformVersion": platform.python_version(),
            "yggdrasilVersion": None,
            "specVersion": SPEC_VERSION,
        }
