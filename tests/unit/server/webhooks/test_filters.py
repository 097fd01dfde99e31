"""Which events a webhook gets: by type, project and environment, as on the real server."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.outbox import Receiver, places_of, wants

HERE = {"type": "feature-created", "project": "shop", "environment": None}
SWITCHED = {"type": "feature-created", "project": "shop", "environment": "production"}
SERVER_WIDE = {"type": "feature-created", "project": None, "environment": None}


@pytest.mark.parametrize(
    ("event", "filters", "wanted"),
    [
        (HERE, {}, True),
        (HERE, {"events": []}, False),
        (HERE, {"events": ["feature-archived"]}, False),
        (HERE, {"projects": ["shop"]}, True),
        (HERE, {"projects": ["other"]}, False),
        (HERE, {"projects": ["*", "other"]}, True),
        (HERE, {"projects": ["other", "*"]}, False),
        (HERE, {"environments": ["production"]}, True),
        (SWITCHED, {"environments": ["production"]}, True),
        (SWITCHED, {"environments": ["development"]}, False),
        (SWITCHED, {"environments": ["*"]}, True),
        (SWITCHED, {"projects": ["other"], "environments": ["production"]}, False),
        (SERVER_WIDE, {"projects": ["other"], "environments": ["production"]}, True),
    ],
)
def test_which_events_a_webhook_gets(event: dict[str, Any], filters: dict[str, list[str]], wanted: bool) -> None:
    """A filter leaves out only events that have a project or an environment, of another one."""
    given = {"events": ["feature-created"], "projects": [], "environments": []} | filters
    places = places_of(given["projects"]), places_of(given["environments"])
    assert wants(Receiver(1, frozenset(given["events"]), *places, is_administrators=True), event) is wanted


@pytest.mark.parametrize(("event", "wanted"), [(HERE, True), (SERVER_WIDE, False)])
def test_a_webhook_of_no_administrator(event: dict[str, Any], wanted: bool) -> None:
    """The webhook gets no event without a project, also if the webhook names its kind."""
    found = Receiver(1, frozenset({"feature-created"}), frozenset(), frozenset(), is_administrators=False)
    assert wants(found, event) is wanted
