"""Strategy types: created, changed, deprecated, deleted."""

from __future__ import annotations

from flagsvc.server.store.resources import strategy_types
from support.seeded_store import SeededStore


def test_a_type_is_made_and_shown(seeded: SeededStore) -> None:
    """Only known members of parameters are stored; a new type is neither deprecated nor built in."""
    parameters = [{"name": "p", "type": "list", "required": True, "extra": 1}]
    made = seeded.write(
        strategy_types.create, {"name": "mine", "title": "t", "parameters": parameters, "deprecated": True}
    )
    assert made == {
        "displayName": None,
        "name": "mine",
        "editable": True,
        "description": None,
        "parameters": [{"name": "p", "type": "list", "required": True}],
        "deprecated": False,
        "title": "t",
    }
    names = [each["name"] for each in seeded.read(strategy_types.list_types)]
    assert names == ["flexibleRollout", "default", "remoteAddress", "applicationHostname", "custom", "mine"]
    assert seeded.told() == [("strategy-created",)]


def test_what_cannot_be_made(seeded: SeededStore) -> None:
    """All problems are reported together; names are unique."""
    bad = {"name": "a b", "parameters": [{"name": "", "type": "list"}, {"name": "", "type": "list"}]}
    assert seeded.refusal(strategy_types.create, bad) == (
        400,
        "BadDataError",
        [
            '"name" must be URL friendly. You provided "a b".',
            '"parameters[0].name" is not allowed to be empty.',
            '"parameters[1].name" is not allowed to be empty.',
        ],
    )
    taken = seeded.refusal(strategy_types.create, {"name": "custom", "parameters": []})
    assert taken == (409, "NameExistsError", ["Strategy with name custom already exist!"])


def test_a_type_is_written_anew(seeded: SeededStore) -> None:
    """Parameters are replaced; an absent title or description stays."""
    seeded.write(strategy_types.create, {"name": "mine", "title": "t", "description": "d", "parameters": []})
    seeded.write(strategy_types.change, "mine", {"parameters": [{"name": "p", "type": "list"}], "title": None})
    found = seeded.read(strategy_types.find, "mine")
    assert (found["title"], found["description"]) == (None, "d")
    assert found["parameters"] == [{"name": "p", "type": "list"}]
    assert seeded.refusal(strategy_types.change, "nosuch", {"parameters": []})[0] == 404


def test_what_is_built_in_stays(seeded: SeededStore) -> None:
    """A built-in type cannot be changed or deleted, but it can be deprecated."""
    refused = (403, "OperationDeniedError", ["Cannot edit strategy default"])
    assert seeded.refusal(strategy_types.change, "default", {"parameters": []}) == refused
    assert seeded.refusal(strategy_types.remove, "default") == refused
    seeded.write(strategy_types.deprecate, "default")
    assert seeded.read(strategy_types.find, "default")["deprecated"] is True
    seeded.write(strategy_types.reactivate, "default")
    assert seeded.read(strategy_types.find, "default")["deprecated"] is False
    assert seeded.told() == [("strategy-deprecated",), ("strategy-reactivated",)]


def test_what_does_not_exist(seeded: SeededStore) -> None:
    """It is a 404, with each operation's own message."""
    messages = [
        seeded.refusal(each, "nosuch")
        for each in (strategy_types.deprecate, strategy_types.reactivate, strategy_types.find, strategy_types.remove)
    ]
    assert messages == [
        (404, "NotFoundError", ["Could not find strategy with name nosuch"]),
        *[(404, "NotFoundError", ["No strategy found"])] * 3,
    ]


def test_a_custom_type_goes_although_it_is_used(seeded: SeededStore) -> None:
    """A custom type in use can be deleted, as on the real server."""
    seeded.write(strategy_types.remove, "custom")
    assert seeded.refusal(strategy_types.find, "custom")[0] == 404
    assert seeded.told() == [("strategy-deleted",)]
