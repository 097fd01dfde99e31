"""Our proxy beside the npm reference proxy: the same answers over HTTP, and every deliberate difference still there.

`DIFF_ANSWERS=200000` compares so many answers, `DIFF_SEED=7` those to other questions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest
from diff_campaign import Campaign
from diff_compare import ABSENT
from diff_exclusions import EXCLUSIONS, Exclusion, document
from diff_fixed import question
from diff_pair import Pair, pair

from support import class_ways

ANSWERS = int(os.environ.get("DIFF_ANSWERS", "3000"))
SEED = os.environ.get("DIFF_SEED", "continuous")
EMPTY = {"version": 2, "features": []}


@pytest.fixture(scope="module")
def both() -> Iterator[Pair]:
    """Give both proxies on one upstream server."""
    with pair(EMPTY) as proxies:
        yield proxies


@pytest.fixture(scope="module")
def campaign(both: Pair) -> Campaign:
    """Give the results of random questions, of the fixed ones, and of those for exclusions."""
    done = Campaign(both, SEED)
    done.random(ANSWERS, 75)
    done.fixed()
    done.targeted()
    return done


def test_answers_are_those_of_the_reference(campaign: Campaign, record_property: Callable[[str, object], None]) -> None:
    """Statuses, toggles, their order, state, variant and payload are the reference's, but for the exclusions."""
    record_property("summary", campaign.figures.line())
    assert campaign.figures.answers > ANSWERS
    expect_none(campaign)


def expect_none(done: Campaign) -> None:
    """Fail with reproductions when an answer differed."""
    if done.figures.mismatches:
        pytest.fail(f"{len(done.figures.mismatches)} mismatches\n{done.explain_mismatches()}", pytrace=False)


@pytest.mark.parametrize("row", EXCLUSIONS, ids=lambda row: row.name.replace(" ", "-"))
def test_each_exclusion_still_occurs(campaign: Campaign, row: Exclusion) -> None:
    """An exclusion that does not occur any more must be removed from the table."""
    assert campaign.figures.excluded[row.name] or not row.possible()


@pytest.mark.parametrize(
    "settings",
    [
        {"TRUST_PROXY": "true", "UNLEASH_ENVIRONMENT": "production"},
        {"TRUST_PROXY": "loopback, 192.168.0.0/16", "PROXY_BASE_PATH": ""},
        {"TRUST_PROXY": "false", "UNLEASH_APP_NAME": "web"},
    ],
    ids=["trusting-all", "trusting-some", "trusting-none"],
)
def test_answers_under_other_settings(settings: dict[str, str]) -> None:
    """The caller's address, the environment and the default application name come from the same place in both."""
    with pair(EMPTY, settings) as proxies:
        done = Campaign(proxies, f"settings {sorted(settings.items())}", trusting=settings["TRUST_PROXY"] != "false")
        done.random(450, 75)
        expect_none(done)


@pytest.mark.parametrize("way", [way for way in class_ways.OPTIONS if way != "as it comes"])
def test_classes_of_contexts_change_no_answer(way: str) -> None:
    """Answers are the reference's with programs of classes from the first request on, without them, and with little memory."""
    with pair(EMPTY, class_ways.variables(way)) as proxies:
        done = Campaign(proxies, "classes")
        done.random(450, 75)
        expect_none(done)
        metrics = proxies.ours.get("/internal-backstage/prometheus").text
    hits, misses, size = (
        sum(float(line.split()[1]) for line in metrics.splitlines() if line.startswith(f"flagsvc_class_cache_{name}"))
        for name in ("hits", "misses", "bytes")
    )
    assert (hits > 0, misses) == (way != "off", 0)
    assert size <= class_ways.OPTIONS[way].get("class_bytes", size)


def test_without_the_state_inside_a_variant_nothing_else_differs() -> None:
    """With the option off, as with FLAGSVC_URL, variants lack the state under both names, and all else is the reference's."""
    with pair(EMPTY, {"FLAGSVC_VARIANT_FEATURE_STATE": "false"}) as proxies:
        done = Campaign(proxies, "state")
        done.random(300, 75)
        kinds = {(found.field, found.ours) for found in done.figures.mismatches}
        assert kinds == {("variant.feature_enabled", ABSENT), ("variant.featureEnabled", ABSENT)}


def test_a_named_look_up_makes_up_no_session(both: Pair) -> None:
    """Without a sessionId a toggle that sticks to it is off in named look-ups, in both."""
    by_session = {"rollout": "40", "stickiness": "sessionId", "groupId": "g"}
    both.load(document({"name": "session", "strategies": [{"name": "flexibleRollout", "parameters": by_session}]}))
    asked = question("POST", "", {"toggles": ["session"] * 20, "context": {}})
    for reply in both.ask(asked):
        assert [toggle["enabled"] for toggle in reply.toggles()] == [False] * 20
