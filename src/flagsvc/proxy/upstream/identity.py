"""The names under which this proxy is known to the upstream, with versions. They contain no data about end users.

The options are flagsvcAppName and flagsvcInstanceId (specification: Options; behaviour: Registration; Privacy).
"""

from __future__ import annotations

import platform
import uuid
from dataclasses import dataclass, field

from flagsvc.core.version import VERSION

SDK = f"flagsvc:{VERSION}"
"""Our name and version: the `unleash-sdk` header and the `sdkVersion` field."""
SPEC_VERSION = "6.1.0"
"""The version of the client specification that this proxy passes."""


def new_connection_id() -> str:
    """Return a new id of one running proxy; a UUID."""
    return str(uuid.uuid4())


@dataclass(frozen=True)
class Identity:
    """The names of a proxy: application, instance, and a connection id that is new with each start."""

    app_name: str
    instance_id: str
    connection_id: str = field(default_factory=new_connection_id)

    def fields(self) -> dict[str, object]:
        """Return the fields that every payload to the upstream contains."""
        return {
            "appName": self.app_name,
            "instanceId": self.instance_id,
            "connectionId": self.connection_id,
            "platformName": platform.python_implementation(),
            "platformVersion": platform.python_version(),
            "yggdrasilVersion": None,
            "specVersion": SPEC_VERSION,
        }
