"""The evaluation context knows its fields by their wire names."""

from __future__ import annotations

import pytest

from flagsvc.engine.context import ATTRIBUTES, Context

FULL = Context(
    app_name="web",
    environment="prod",
    user_id="7",
    session_id="s",
    remote_address="10.0.0.1",
    current_time=1642860000000.0,
    properties={"region": "eu"},
    now=1.0,
    entropy=5,
)
WIRE = {
    "appName": "web",
    "environment": "prod",
    "userId": "7",
    "sessionId": "s",
    "remoteAddress": "10.0.0.1",
    "region": "eu",
    "properties": "[object Object]",
    "currentTime": "Sat Jan 22 2022 14:00:00 GMT+0000 (Coordinated Universal Time)",
}


@pytest.mark.parametrize(("field", "value"), WIRE.items())
def test_every_field_is_read_by_its_wire_name(field: str, value: str) -> None:
    """Each standard field and each property is found under the name that constraints use."""
    assert FULL.get(field) == value


@pytest.mark.parametrize("field", [field for field in WIRE if field not in ("region", "properties")])
def test_an_absent_standard_field_is_looked_up_among_the_properties(field: str) -> None:
    """A property with a standard field's name counts if the field itself is absent."""
    assert Context(properties={field: "from properties"}).get(field) == "from properties"
    assert FULL.replace(properties={field: "from properties"}).get(field) == WIRE[field]


def test_what_is_not_there_is_none() -> None:
    """An absent field is None, never a text, and is left out of the dictionary; properties never are."""
    assert [Context().get(field) for field in ("userId", "region", "currentTime", "appName")] == [None] * 4
    assert Context(user_id="7").as_dict() == {"userId": "7", "properties": {}}
    assert FULL.as_dict()["currentTime"] == 1642860000000.0


def test_a_copy_changes_only_what_is_asked() -> None:
    """`replace` leaves every other attribute, and the original, as they were. A misspelt attribute is named in the error."""
    copy = FULL.replace(user_id="8")
    assert copy.user_id == "8"
    assert FULL.user_id == "7"
    assert [getattr(copy, name) for name in ATTRIBUTES if name != "user_id"] == [
        getattr(FULL, name) for name in ATTRIBUTES if name != "user_id"
    ]
    with pytest.raises(TypeError, match="`userid`"):
        FULL.replace(userid="8")
