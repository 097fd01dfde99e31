"""Checks of names, variants and parameters that a shape cannot express (import validation 6.3)."""

from __future__ import annotations

from typing import Any

import pytest

from flagsvc.server.store.checks import (
    check_name,
    check_variants,
    distribute_weights,
    fill_parameters,
    invalid,
    make_detail,
    prepare_variants,
)
from flagsvc.server.store.errors import CallerError

VARIANT = {"name": "v", "weight": 1}


@pytest.mark.parametrize("name", ["a", "A-b_c.d!e~f*g'h(i)", "...", "x" * 100])
def test_names_that_are_good(name: str) -> None:
    """A name has 1 to 100 characters, and none of them needs an escape in a URL."""
    check_name(name)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("", '"name" is not allowed to be empty.'),
        ("has space", '"name" must be URL friendly. You provided "has space".'),
        ("a\n", '"name" must be URL friendly. You provided "a\\n".'),
        ("é", '"name" must be URL friendly. You provided "é".'),
        ("a/b", '"name" must be URL friendly. You provided "a/b".'),
        ("\ud800", '"name" must be URL friendly. You provided "\\ud800".'),
        ("%41", '"name" must be URL friendly. You provided "%41".'),
        (" " * 101, f'"name" must be URL friendly. You provided "{" " * 101}".'),
        (".", '"name" must be URL friendly. You provided ".".'),
        ("..", '"name" must be URL friendly. You provided "..".'),
        ("x" * 101, f'"name" length must be less than or equal to 100 characters long. You provided "{"x" * 101}".'),
    ],
)
def test_invalid_names(name: str, text: str) -> None:
    """Any other name is a 400 with a message that says what is wrong."""
    with pytest.raises(CallerError) as caught:
        check_name(name)
    assert caught.value.status == 400
    assert caught.value.details == [{"message": text}]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "x."), ("", "x."), (0, "x."), (False, "x."), ([], "x. You provided []."), (1e21, "x. You provided 1e+21.")],
)
def test_details_show_what_was_sent(value: Any, text: str) -> None:
    """The message shows the value unless it is falsy in JavaScript."""
    assert make_detail("x", value) == {"message": text}
    assert invalid(make_detail("x", value)).name == "BadDataError"


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        (None, {"rollout": "100", "stickiness": "userId", "groupId": "f"}),
        ({"rollout": "", "stickiness": "", "groupId": ""}, {"rollout": "", "stickiness": "userId", "groupId": ""}),
        ({"rollout": None, "x": "1"}, {"rollout": "100", "stickiness": "userId", "groupId": "f", "x": "1"}),
        ({"stickiness": "random"}, {"rollout": "100", "stickiness": "random", "groupId": "f"}),
    ],
)
def test_missing_parameters_of_a_rollout(given: dict[str, Any] | None, filled: dict[str, Any]) -> None:
    """A gradual rollout gets default parameters. Other strategies do not."""
    assert fill_parameters("flexibleRollout", given, "f", "userId") == filled
    assert fill_parameters("default", given, "f", "userId") == (given or {})
    assert fill_parameters(None, given, "f", "userId") == (given or {})


@pytest.mark.parametrize(
    ("fixed", "free", "weights"),
    [
        ([], 1, [1000]),
        ([], 3, [334, 333, 333]),
        ([], 7, [143, 143, 143, 143, 143, 143, 142]),
        ([100], 2, [450, 450, 100]),
        ([1000], 1, [0, 1000]),
    ],
)
def test_weights_add_up(fixed: list[int], free: int, weights: list[int]) -> None:
    """The variable variants share the weight that the fixed ones leave. The first variants get the remainder."""
    variants = [{"name": f"z{weight}", "weight": weight, "weightType": "fix"} for weight in fixed]
    variants += [{"name": f"a{number}", "weight": 5, "weightType": "variable"} for number in range(free)]
    found = distribute_weights(variants)
    assert [each["weight"] for each in found] == weights
    assert sum(weights) == 1000


def test_variants_are_sorted_as_people_read() -> None:
    """Punctuation comes first, then digits, then letters in alphabetical order, lower case before upper case."""
    names = ["b", "A", "a", "B", "_", "-", "1", "aB", "ab", "a-b", "Ab", "AB"]
    variants = [{"name": name, "weight": 1, "weightType": "variable"} for name in names]
    found = [each["name"] for each in distribute_weights(variants)]
    assert found == ["_", "-", "1", "a", "A", "a-b", "ab", "aB", "Ab", "AB", "b", "B"]


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        ({}, '"value" must be an array. You provided {}.'),
        ([5], '"[0]" must be of type object. You provided 5.'),
        ([{"weight": 1}], '"[0].name" is required.'),
        ([{"name": "v"}], '"[0].weight" is required.'),
        ([VARIANT, {"name": "a b", "weight": 1}], '"[1].name" must be URL friendly. You provided "a b".'),
        ([{"name": 5, "weight": 1}], '"[0].name" must be a string. You provided 5.'),
        ([{"name": "v", "weight": "x"}], '"[0].weight" must be a number. You provided "x".'),
        ([{"name": "v", "weight": ""}], '"[0].weight" must be a number.'),
        ([{"name": "v", "weight": True}], '"[0].weight" must be a number. You provided true.'),
        ([{"name": "v", "weight": 1.5}], "Weight only supports 1 decimal. You provided 1.5."),
        ([{"name": "v", "weight": float("inf")}], '"[0].weight" must be a number. You provided null.'),
        ([{"name": "v", "weight": -1}], '"[0].weight" must be greater than or equal to 0. You provided -1.'),
        ([{"name": "v", "weight": 1001}], '"[0].weight" must be less than or equal to 1000. You provided 1001.'),
        ([VARIANT | {"weightType": "q"}], '"[0].weightType" must be one of [variable, fix]. You provided "q".'),
        ([VARIANT | {"stickiness": ""}], '"[0].stickiness" is not allowed to be empty.'),
        ([VARIANT | {"payload": 5}], '"[0].payload" must be of type object. You provided 5.'),
        ([VARIANT | {"payload": {"type": "csv"}}], '"[0].payload.value" is required.'),
        ([VARIANT | {"payload": {"type": "csv", "value": ""}}], '"[0].payload.value" is not allowed to be empty.'),
        ([VARIANT | {"payload": {"type": "x", "value": "y", "z": 1}}], '"[0].payload.z" is not allowed. You provided 1.'),
        ([VARIANT | {"zz": 1}], '"[0].zz" is not allowed. You provided 1.'),
        ([VARIANT | {"overrides": {}}], '"[0].overrides" must be an array. You provided {}.'),
        ([VARIANT | {"overrides": [1]}], '"[0].overrides[0]" must be of type object. You provided 1.'),
        ([VARIANT | {"overrides": [{}]}], '"[0].overrides[0].contextName" is required.'),
        (
            [VARIANT | {"overrides": [{"contextName": "x", "values": "y"}]}],
            '"[0].overrides[0].values" must be an array. You provided "y".',
        ),
        (
            [VARIANT | {"overrides": [{"contextName": "x", "values": [""]}]}],
            '"[0].overrides[0].values[0]" is not allowed to be empty.',
        ),
    ],
)
def test_invalid_variants(variants: object, text: str) -> None:
    """The error names the first problem and its path."""
    with pytest.raises(CallerError) as caught:
        check_variants(variants)
    assert caught.value.details == [{"message": text}]


@pytest.mark.parametrize("value", ["{", "5", "null", "NaN", "[NaN]", '"x"', "[" * 100_000])
def test_a_json_payload_is_an_object_or_an_array(value: str) -> None:
    """Other JSON values and invalid JSON are refused."""
    with pytest.raises(CallerError, match="invalid data"):
        check_variants([VARIANT | {"payload": {"type": "json", "value": value}}])
    assert check_variants([VARIANT | {"payload": {"type": "json", "value": '{"a": [1]}'}}])


def test_a_name_comes_once() -> None:
    """The error shows the second variant with the same name."""
    with pytest.raises(CallerError) as caught:
        check_variants([VARIANT, VARIANT])
    assert caught.value.details[0]["message"].startswith('"[1]" contains a duplicate value. You provided {"name":"v"')


@pytest.mark.parametrize(
    ("variants", "text"),
    [
        ([VARIANT | {"weightType": "fix"}], 'There must be at least one "variable" variant'),
        (
            [{"name": name, "weight": 600, "weightType": "fix"} for name in "ab"] + [VARIANT | {"weightType": "variable"}],
            "The traffic distribution total must equal 100%",
        ),
    ],
)
def test_weights_that_cannot_add_up(variants: list[Any], text: str) -> None:
    """It is an error if no variant is variable, or if the fixed weights exceed the total."""
    with pytest.raises(CallerError) as caught:
        prepare_variants(variants)
    assert caught.value.details == [{"message": text}]


def test_what_is_stored_of_variants() -> None:
    """Stored variants get no defaults, a weight may be text, and a variant without a weight type is left out.
    The input does not change."""
    given = [{"name": "v", "weight": "7", "weightType": "variable"}, VARIANT | {"name": "lost"}]
    assert check_variants(given)[1] == {"name": "lost", "weight": 1, "weightType": "variable", "stickiness": "default"}
    assert prepare_variants(given) == [{"name": "v", "weight": 1000, "weightType": "variable"}]
    assert given[0]["weight"] == "7"  # type: ignore[index]
    assert prepare_variants([]) == []
