"""What a change of options means for an environment that runs: which flags its keys open, and which keys open it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flagsvc.proxy.changes import (
    find_other_flags,
    find_waiting,
    has_other_scope,
    hold_back,
    keys_of,
    needs_replacement,
    with_keys_meanwhile,
)
from flagsvc.settings.options import ProxyOptions
from flagsvc.testing import RecordingLog
from support.apps_options import options

GITLAB = "https://gitlab.example/api/v4/feature_flags/unleash/7"


@pytest.mark.parametrize(
    ("old", "new", "is_known", "is_in_doubt"),
    [
        ("*:a.1", "*:a.2", False, False),
        ("*:a.1", "*:b.1", True, True),
        ("*:a.1", "p:a.1", True, True),
        ("*:a.1", "*:a.1", False, False),
        ("one", "one", False, False),
        ("one", "two", False, True),
        ("[]:a.1", "[]:a.1", False, False),
        ("[]:a.1", "[]:a.2", False, True),
        ("one", "*:a.1", False, True),
        ("*:a.1", "one", False, True),
    ],
)
def test_tokens_of_other_environments(old: str, new: str, is_known: bool, is_in_doubt: bool) -> None:
    """Only two tokens that name their scopes are known to differ. In doubt an environment is replaced, which is always right."""
    former, present = options(flagsvc_api_token=old), options(flagsvc_api_token=new)
    assert has_other_scope(old, new) is is_known
    assert find_other_flags(former, present) == ["flagsvcApiToken"] * is_in_doubt
    assert needs_replacement(former, present) is is_in_doubt


@pytest.mark.parametrize(
    ("more", "names", "is_other"),
    [
        ({}, [], False),
        ({"client_keys": "new", "exp_server_side_sdk_config_tokens": "new"}, [], False),
        ({"refresh_interval": 1}, [], True),
        ({"flagsvc_app_name": "x", "flagsvc_instance_id": "y"}, [], True),
        ({"flagsvc_url": "http://other/api", "tags": "a:b"}, ["flagsvcUrl", "tags"], True),
        ({"project_name": "p", "name_prefix": "n"}, ["projectName", "namePrefix"], True),
        ({"upstream_headers": "X-Tenant: a"}, ["upstreamHeaders"], True),
        ({"environment": "e"}, ["environment"], True),
    ],
)
def test_options_that_decide_which_flags_a_key_opens(more: dict[str, Any], names: list[str], is_other: bool) -> None:
    """With one of them changed, new keys are for other flags. Any other change but one of keys needs a replacement, too."""
    former = options()
    present = options(**more)
    assert find_other_flags(former, present) == names
    assert needs_replacement(former, present) is is_other


def test_names_that_decide_at_gitlab() -> None:
    """GitLab knows its callers by the instance id, and the environment by a name."""
    former = options(flagsvc_url=GITLAB, flagsvc_instance_id="one")
    assert find_other_flags(former, options(flagsvc_url=GITLAB, flagsvc_instance_id="two")) == ["flagsvcInstanceId"]


def keyed(client: Sequence[str], server: Sequence[str] = (), **more: Any) -> ProxyOptions:
    """Return options with these keys."""
    return options(client_keys=list(client), exp_server_side_sdk_config_tokens=list(server), **more)


def meanwhile(former: ProxyOptions, coming: ProxyOptions) -> tuple[tuple[str, ...], ...]:
    """Return the client keys and the tokens that open the former flags meanwhile."""
    return tuple(keys_of(with_keys_meanwhile(former, coming)).values())


@pytest.mark.parametrize("more", [{"name_prefix": "x"}, {"flagsvc_api_token": "*:production.secret"}])
def test_keys_while_other_flags_are_coming(more: dict[str, Any]) -> None:
    """Only a key that both have opens the former flags: no new one, no other one that ended, and none of another kind now."""
    former = keyed(["both", "old"], ["sdk"])
    assert meanwhile(former, keyed(["both", "new"], ["sdk"], **more)) == (("both",), ("sdk",))
    assert meanwhile(former, keyed(["both"], ["other"], **more)) == (("both",), ())
    assert meanwhile(former, keyed(["new"], ["both"], **more)) == ((), ())


def test_keys_while_the_same_flags_are_coming() -> None:
    """They are the new ones, at once."""
    former = keyed(["both", "old"], ["sdk"])
    assert meanwhile(former, keyed(["both", "new"], refresh_interval=1)) == (("both", "new"), ())


def test_everything_else_stays() -> None:
    """Only the keys of callers differ: not the upstream's token, and no other option."""
    former = keyed(["old"], flagsvc_api_token="former")
    found = with_keys_meanwhile(former, keyed(["old"], flagsvc_api_token="*:a.new", refresh_interval=1))
    assert found == former


# ---- a single environment


def held(used: ProxyOptions, read: ProxyOptions) -> tuple[ProxyOptions, list[str]]:
    """Return the options in use after others were read, and what was logged."""
    log = RecordingLog()
    return hold_back(used, read, log), [f"{line.event} {line.fields or ''}".strip() for line in log.lines]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"name_prefix": "x"},
            ["new keys and tokens wait for the restart that these options need {'options': 'namePrefix'}"],
        ),
        (
            {"flagsvc_api_token": "*:b.token", "tags": "a:b"},
            [
                "flagsvcApiToken is of another project or environment now and needs a restart",
                "new keys and tokens wait for the restart that these options need {'options': 'tags, flagsvcApiToken'}",
            ],
        ),
    ],
)
def test_new_keys_that_wait_for_a_restart(more: dict[str, Any], told: list[str]) -> None:
    """Nothing of a change of the flags is used: neither keys nor the token, and no former key ends. No secret is logged."""
    used = keyed(["one", "two"], ["sdk"], flagsvc_api_token="*:a.token")
    assert held(used, keyed(["one", "new"], ["sdk"], **{"flagsvc_api_token": "*:a.other", **more})) == (used, told)
    assert held(used, keyed(["one"], ["two"], **{"flagsvc_api_token": "*:a.token", **more})) == (used, told)


def test_keys_that_are_taken_away_wait_for_nothing() -> None:
    """They end at once, and nothing waits."""
    used = keyed(["one", "two"], ["sdk"])
    assert held(used, keyed(["two"], name_prefix="x")) == (keyed(["two"]), [])
    assert held(used, keyed(["one", "two"], ["sdk"], name_prefix="x")) == (used, [])


def test_what_waits_for_a_restart() -> None:
    """Only what is known to be for other flags: a token whose scope is in doubt is used at once if only listed keys count."""
    used = keyed(["one"], flagsvc_api_token="*:a.token")
    assert find_waiting(used, keyed(["one"], flagsvc_api_token="opaque", refresh_interval=1)) == []
    assert find_waiting(used, keyed(["one"], flagsvc_api_token="*:b.token", name_prefix="x")) == [
        "namePrefix",
        "flagsvcApiToken",
    ]


@pytest.mark.parametrize(("token", "other"), [("[]:a.token", "[]:a.other"), ("opaque", "other")])
def test_a_token_in_doubt_waits_if_tokens_are_looked_up(token: str, other: str) -> None:
    """Else a looked-up token that is valid for the new projects would open the flags of the former ones."""
    used = keyed(["one"], flagsvc_api_token=token, token_validation="upstream")
    read = keyed(["new"], flagsvc_api_token=other, token_validation="upstream")
    assert find_waiting(used, read) == ["flagsvcApiToken"]
    assert held(used, read) == (
        used,
        [
            "flagsvcApiToken may be of another project or environment now and needs a restart",
            "new keys and tokens wait for the restart that these options need {'options': 'flagsvcApiToken'}",
        ],
    )
    static = keyed(["one"], flagsvc_api_token=token)
    assert find_waiting(static, keyed(["new"], flagsvc_api_token=other)) == []
