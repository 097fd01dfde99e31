"""The page to try a context: the same answers as callers get, every step told, and the context kept nowhere."""

from __future__ import annotations

import json

import pytest

from flagsvc import Context, ContextView, Strategy
from flagsvc.engine.context import FIELDS
from flagsvc.engine.explain import explain
from flagsvc.proxy.pages.trying import EXPLAINED, LISTED
from flagsvc.testing import RecordingLog
from support.desk_scene import DeskScene
from unit.proxy.pages.test_pages_status import features

MARKED = "a-marked-value-7f3e"
CUSTOM = {
    "features": [
        {"name": "opening", "enabled": True, "strategies": [{"name": "hours", "parameters": {"from": "9"}}]},
        {"name": "raising", "enabled": True, "strategies": [{"name": "raises"}]},
    ]
}


class Hours(Strategy):
    """On from an hour that an enricher adds."""

    name = "hours"

    def is_enabled(self, parameters: object, context: ContextView) -> bool:
        """Return whether it is late enough."""
        return context.properties.get("hour", "") >= "9"


class Raises(Strategy):
    """Raises, with the context in its words."""

    name = "raises"

    def is_enabled(self, parameters: object, context: ContextView) -> bool:
        raise ValueError(context.user_id)


def add_hour(context: Context) -> Context:
    """Add the hour."""
    return context.replace(properties={**context.properties, "hour": "9"})


async def test_the_form_offers_what_flags_read() -> None:
    """The fields of all flags, or of one and its parents; nothing else."""
    desk = DeskScene()
    assert [each["name"] for each in (await desk.data("/ui/try.json"))["fields"]] == ["userId", "plan", "region"]
    child = (await desk.data("/ui/try.json?flag=child"))["fields"]
    assert [each["name"] for each in child] == ["userId", "plan", "region"]
    assert [each["name"] for each in (await desk.data("/ui/try.json?flag=off"))["fields"]] == [
        name for name in FIELDS if name != "properties"
    ], "a flag that reads nothing offers the standard fields"
    assert 'name="field.region"' in await desk.text("/ui/try")


@pytest.mark.parametrize(
    "fields",
    [{}, {"userId": "7"}, {"userId": "8", "plan": "team", "region": "eu"}, {"userId": "55", "plan": "team", "region": "eu"}],
)
async def test_the_answers_are_those_of_callers(fields: dict[str, str]) -> None:
    """Each flag is on or off as the snapshot says, and the page shows every step with the whole explanation."""
    desk = DeskScene()
    form = {f"field.{name}": value for name, value in fields.items()}
    result = (await desk.data("/ui/try.json", method="POST", form=form))["result"]
    snapshot = desk.only.holder.current
    assert snapshot is not None
    context = Context(user_id=fields.get("userId"), properties={name: value for name, value in fields.items() if name != "userId"})
    expected = {each.name: each.enabled for each in explain(snapshot, context)}
    assert {each["name"]: each["enabled"] for each in result["explained"]} == expected
    assert result["on"] == sum(expected.values())
    page = await desk.text("/ui/try", method="POST", form=form)
    assert ("region is eu" in page and "bucket" in page) or "userId" not in fields


async def test_every_step_is_shown() -> None:
    """Also steps that were not reached, with changes that would turn the answer."""
    desk = DeskScene()
    page = await desk.text("/ui/try", method="POST", form={"field.userId": "7", "field.plan": "pro", "flag": "new-checkout"})
    for part in ("EU beta", "it is pro", "in segment beta", "it is absent", "(not reached)", "bucket", "userId is 7"):
        assert part in page, part
    page = await desk.text("/ui/try", method="POST", form={"field.userId": "8", "flag": "new-checkout"})
    assert 'class="turning"' in page


async def test_custom_strategies_and_enrichers_take_part() -> None:
    """The context after the enrichers is shown, and what a strategy raised."""
    desk = DeskScene(document=CUSTOM, custom_strategies=[Hours(), Raises()], exp_custom_enrichers=[add_hour])
    result = (await desk.data("/ui/try.json", method="POST", form={"field.userId": "7"}))["result"]
    assert {each["name"]: each["enabled"] for each in result["explained"]} == {"opening": True, "raising": False}
    assert result["enriched"] and result["context"]["properties"] == {"hour": "9"}
    page = await desk.text("/ui/try", method="POST", form={"field.userId": "7"})
    assert "after the enrichers" in page and "it raised ValueError: 7" in page
    snapshot = desk.only.holder.current
    assert snapshot is not None and snapshot.take_faults() == [], "callers' logs do not get the faults of this page"


async def test_enrichers_get_what_callers_sent() -> None:
    """As for callers, the forced environment and the defaults come after the enrichers."""
    seen: list[str | None] = []

    def move(context: Context) -> Context:
        seen.append(context.app_name)
        return context.replace(environment="staging")

    desk = DeskScene(document=CUSTOM, exp_custom_enrichers=[move], environment="production")
    result = (await desk.data("/ui/try.json", method="POST", form={"field.userId": "7"}))["result"]
    assert seen == [None] and result["context"]["environment"] == "production"
    assert result["context"]["appName"]


async def test_too_many_fields() -> None:
    """They are refused, and not shown again."""
    answer = await DeskScene().ask("/ui/try", "POST", {f"field.n{each}": "v" for each in range(400)})
    assert answer.status == 400 and b"more than 300 fields" in answer.body and b"n399" not in answer.body


async def test_an_enricher_that_fails() -> None:
    """The page says so, the log says where, and neither has the context."""

    def fail(context: Context) -> Context:
        raise ValueError(context.user_id)

    log = RecordingLog()
    desk = DeskScene(exp_custom_enrichers=[fail], logger=log)
    answer = await desk.ask("/ui/try", "POST", {"field.userId": MARKED})
    assert answer.status == 500 and b"fail" in answer.body and b"the log says why" in answer.body
    assert len(log.lines) >= 1 and MARKED not in repr(log.lines)


async def test_the_context_is_kept_nowhere() -> None:
    """A marked value is in the answer to its own request, in no header of it, and in no later page or log."""
    log = RecordingLog()
    desk = DeskScene(logger=log, access_log=True)
    answer = await desk.ask("/ui/try", "POST", {"field.userId": MARKED, "name": "other", "value": MARKED})
    assert MARKED in answer.body.decode() and MARKED not in repr(answer.headers())
    assert b'method="post"' in answer.body and b'name="field.userId" value="a-marked' in answer.body
    later = [await desk.text(each) for each in ("/ui/try", "/ui/status", "/ui/flags", "/ui/config", "/ui/try.json")]
    assert MARKED not in "".join(later) and MARKED not in repr(log.lines)


async def test_wrong_values() -> None:
    """A time that is none and a value that is too long are told, and what was typed stays."""
    desk = DeskScene(context_value_limit=1000)
    answer = await desk.ask("/ui/try", "POST", {"field.currentTime": "soon", "field.userId": "7"})
    assert answer.status == 400 and b"expected a date" in answer.body and b'value="soon"' in answer.body
    answer = await desk.ask("/ui/try.json", "POST", {"field.userId": "x" * 1001})
    assert answer.status == 400 and "userId" in json.loads(answer.body)["problems"][0]


async def test_many_flags() -> None:
    """The first are explained, further ones listed; a name narrows them, and the exact one comes first."""
    names = [f"flag-{each:03}" for each in range(EXPLAINED + LISTED + 5)] + ["flag"]
    desk = DeskScene(document=features(*names))
    result = (await desk.data("/ui/try.json", method="POST", form={"flag": "flag"}))["result"]
    assert result["explained"][0]["name"] == "flag" and len(result["explained"]) == EXPLAINED
    assert len(result["others"]) == LISTED and result["on"] == result["fitting"] == len(names)
    page = await desk.text("/ui/try", method="POST", form={"flag": "flag-00"})
    assert "flag-009" in page and "flag-010" not in page
    assert "in its name" in await desk.text("/ui/try", method="POST", form={"flag": "none"})
