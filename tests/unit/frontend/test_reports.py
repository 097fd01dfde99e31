"""What browsers report: it is in the usage of the flag, and nothing that a page makes up or that tells users apart is stored.

Flags that OpenFeature providers ask for one at a time are counted by the flag server itself (decision 0035).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import event, select
from sqlalchemy.exc import OperationalError

from flagsvc.core.errors import DatabaseError, UnwritableError
from flagsvc.frontend import report_store
from flagsvc.frontend.contract import FlagCounter
from flagsvc.frontend.report_store import APP_NAME, SEEN_INTERVAL_S, WRITE_INTERVAL_S, FrontendReport, ReportStore, unavailable
from flagsvc.http.messages import HttpError
from flagsvc.http.reports import ReportedUsage
from flagsvc.server.store.actors import ClientToken
from flagsvc.server.store.resources.applications import Registration, register
from flagsvc.server.store.schema import METADATA, application_instances
from flagsvc.testing import FakeClock, RecordingLog
from support.flagservers import FRONTEND_SECRET, AppClient, app_client

SHOP_SECRET = "shop:development.secret-of-a-page"
STRATEGY = {"environment": "development", "name": "default"}
VARIANT = {"name": "green", "weight": 1000, "weightType": "variable", "stickiness": "default"}
GIVEN: dict[str, Any] = {
    "projects": [{"id": "shop", "name": "Shop"}],
    "tokens": [{"type": "frontend", "secret": SHOP_SECRET, "projects": ["shop"]}],
    "features": [{"name": "on", "enabled": ["development"]}, {"name": "basket", "project": "shop", "enabled": ["development"]}],
    "strategies": [
        {**STRATEGY, "feature": "on", "name": "flexibleRollout", "parameters": {"rollout": "100"}, "variants": [VARIANT]},
        {**STRATEGY, "feature": "basket"},
    ],
}
MARK = "marked-user-4711"


def report(client: AppClient, toggles: Any, token: str = FRONTEND_SECRET, **more: Any) -> int:
    """Send a report that has just ended, and return the status."""
    bucket = {"start": "2020-01-01T00:00:00Z", "stop": "2099-01-01T00:00:00Z", "toggles": toggles}
    body = {"appName": "web", "instanceId": MARK, "bucket": bucket, **more}
    headers = {"unleash-sdk": "unleash-client-js:3.8.2"}
    return client.post("/api/frontend/client/metrics", body, token=token, headers=headers).status


def usage(client: AppClient, name: str) -> list[tuple[str, int, int, Any]]:
    """Return the stored usage of a flag: application, on, off and variants."""
    rows = client.get(f"/api/admin/client-metrics/features/{name}/raw").json()["data"]
    return [(row["appName"], row["yes"], row["no"], row["variants"]) for row in rows if row["yes"] or row["no"]]


def test_counts_are_those_of_the_flag(tmp_path: Path) -> None:
    """Counts of several reports are added up under the application's name; flags of other projects are left out."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        counted = {"on": {"yes": 5, "no": 1, "variants": {"green": 5}}, "basket": {"yes": 1, "no": 0}}
        assert report(client, counted) == report(client, counted) == 200
        assert report(client, counted, SHOP_SECRET) == 200
        assert usage(client, "on") == [("web", 10, 2, {"green": 10})]
        assert usage(client, "basket") == [("web", 3, 0, {})]


def test_nothing_that_a_page_makes_up_is_stored(tmp_path: Path) -> None:
    """Unknown flags and variants are left out. The application has one instance, with its SDK and without an address."""
    database = tmp_path / "flags.db"
    with app_client(str(database), given=GIVEN) as client:
        assert report(client, {MARK: {"yes": 1, "no": 0}, "on": {"yes": 1, "variants": {MARK: 1}}}) == 200
        assert usage(client, "on") == [("web", 1, 0, {})]
        with client.server.store.reading() as tx:
            [row] = tx.db.execute(select(application_instances)).mappings().all()
            stored = [str(each) for table in METADATA.tables.values() for each in tx.db.execute(select(table))]
    found = (row["instance_id"], row["sdk_type"], row["sdk_version"], row["client_ip"])
    assert found == ("default", "frontend", "unleash-client-js:3.8.2", None)
    assert not [each for each in stored if MARK in each or "203.0.113.7" in each]


def lose() -> NoReturn:
    """Fail as a database that cannot be reached."""
    raise DatabaseError("the database failed: OperationalError") from OperationalError("", {}, Exception())


def test_without_the_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database is away flags are evaluated as before, and reports are a 503 that says when to come back."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        assert client.get("/api/frontend", token=FRONTEND_SECRET).status == 200
        for method in ("reading", "recording"):
            monkeypatch.setattr(client.server.store, method, lose)
        assert client.get("/api/frontend", token=FRONTEND_SECRET).status == 200
        assert report(client, {}) == 503
        assert client.log.at("error") == []


PAGES = ClientToken("frontend", "development", ("*",))


def named(name: str, yes: int = 0) -> FrontendReport:
    """Return what an application reports: how often the flag `on` was on, or nothing."""
    return FrontendReport(name, None, None, [ReportedUsage("on", yes, 0, {})] if yes else [])


@contextmanager
def reporting(client: AppClient) -> Iterator[tuple[ReportStore, FakeClock, list[str]]]:
    """Give a store of reports, its clock, and a list that gets each statement that writes in the database."""
    clock, writes = FakeClock(), list[str]()

    def note(*given: Any) -> None:
        statement = given[2]
        if statement.startswith(("INSERT", "UPDATE")):
            writes.append(statement)

    engine = client.server.store.engine
    event.listen(engine, "before_cursor_execute", note)
    with ThreadPoolExecutor(2) as pool:
        yield ReportStore(client.server.store, pool, clock), clock, writes
    event.remove(engine, "before_cursor_execute", note)


async def save_all(store: ReportStore, clock: FakeClock, reports: list[FrontendReport]) -> list[BaseException | None]:
    """Save reports that arrive at the same moment, after a second without any, and return their errors."""
    await clock.advance(WRITE_INTERVAL_S)
    return await asyncio.gather(*(store.save(PAGES, each) for each in reports), return_exceptions=True)


def stored_names(client: AppClient) -> set[str]:
    return {row["appName"] for row in client.get("/api/admin/metrics/applications").json()["applications"]}


def test_names_that_pages_make_up_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the names that only pages gave, so many are kept apart. The rest counts under one name; registered ones are as before."""
    monkeypatch.setattr(report_store, "MAX_APPLICATIONS", 3)
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client, reporting(client) as (store, clock, _):
        with client.server.store.recording() as tx:
            register(tx, [Registration("registered", "development")])
        for reports in ([named("a", 1), named("b", 1)], [named("c", 1), named("d", 1), named("e", 1)]):
            assert asyncio.run(save_all(store, clock, reports)) == [None] * len(reports)
        last = [named("f", 1), named("a", 1), named("registered", 1), named("g")]
        assert asyncio.run(save_all(store, clock, last)) == [None] * 4
        assert stored_names(client) == {"a", "b", "c", "registered", APP_NAME}
        counted = {("a", 2), ("b", 1), ("c", 1), (APP_NAME, 3), ("registered", 1)}
        assert {(name, yes) for name, yes, _, _ in usage(client, "on")} == counted


def test_an_application_is_not_stored_as_seen_again_at_once(tmp_path: Path) -> None:
    """A report without counts writes nothing if its application was stored within the last minute."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client, reporting(client) as (store, clock, writes):
        for seconds, is_written in ((0.0, True), (1.0, False), (SEEN_INTERVAL_S, True)):
            writes.clear()
            asyncio.run(clock.advance(seconds))
            asyncio.run(save_all(store, clock, [named("web")]))
            assert bool(writes) is is_written, seconds


def test_reports_of_a_second_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first report is stored at once. Later reports wait up to a second, and a single transaction stores them all."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client, reporting(client) as (store, clock, _):
        begun = Counter[str]()
        recording = client.server.store.recording

        def counted() -> Any:
            begun["writes"] += 1
            return recording()

        monkeypatch.setattr(client.server.store, "recording", counted)

        async def send() -> None:
            await store.save(PAGES, named("first", 1))
            saved = [asyncio.create_task(store.save(PAGES, named(f"page-{each}", 1))) for each in range(200)]
            assert await clock.next_sleep() == WRITE_INTERVAL_S
            saved[0].cancel()
            assert begun["writes"] == 1
            await clock.advance(WRITE_INTERVAL_S)
            results = await asyncio.gather(*saved, return_exceptions=True)
            assert [type(each) for each in results] == [asyncio.CancelledError, *[type(None)] * 199]

        asyncio.run(send())
        assert begun["writes"] == 2
        assert len(stored_names(client)) == 201


def test_reports_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A report that is one too many gets a 503 that says when to come back. The other reports and the next report are stored."""
    monkeypatch.setattr(report_store, "MAX_ENTRIES", 4)
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client, reporting(client) as (store, clock, _):
        first, second, refused = asyncio.run(save_all(store, clock, [named("web", 1)] * 3))
        assert first is None
        assert second is None
        assert isinstance(refused, HttpError)
        assert (refused.status, refused.retry) == (503, 5)
        assert asyncio.run(save_all(store, clock, [named("web", 1)])) == [None]
        assert usage(client, "on") == [("web", 3, 0, {})]


def test_one_report_does_not_spoil_those_beside_it(tmp_path: Path) -> None:
    """A name that a database cannot hold is stored as far as it can, because one transaction stores the reports of many. What
    cannot be read costs only itself: the other flags and variants of a report count, and a metric counts what is left out."""
    with app_client(str(tmp_path / "flags.db"), given=GIVEN) as client:
        assert report(client, {}, appName="") == 400
        assert report(client, {}, appName="a\0b") == report(client, {}, appName="a" * 256) == 200
        assert stored_names(client) == {"a\ufffdb", "a" * 255}
        counted = {"on": {"yes": 2, "variants": {"green": "2", "red": -1}}, "basket": {"yes": -1}, "gone": None}
        assert report(client, counted) == 200
        assert usage(client, "on") == [("web", 2, 0, {"green": 2})]
        assert usage(client, "basket") == []
        assert client.server.malformed.read() == {"entries": 3}


def test_a_database_that_takes_no_changes_is_told() -> None:
    """A caller that reports tries again later, as after an outage."""
    told = unavailable(UnwritableError("the disk is full"))
    assert isinstance(told, HttpError) and told.status == 503
    assert "the disk is full" in str(told.message)


ONE, OTHER = ClientToken("backend", "development", ("*",)), ClientToken("frontend", "production", ("shop",))


async def pass_a_second(clock: FakeClock, store: AsyncMock, calls: int) -> None:
    """Let counts be stored that wait, until the store was asked so often."""
    while store.save.await_count < calls:
        await clock.advance(1.0)
        await asyncio.sleep(0)


async def test_counts_of_a_second_are_stored_together() -> None:
    """Each token has a report, with how often a flag was on, off, and had each variant; a failure drops its counts alone."""
    clock, log, store = FakeClock(), RecordingLog(), AsyncMock(ReportStore)
    counter = FlagCounter(store, clock, log)
    for name, variant in (("a", "enabled"), ("a", "disabled"), ("a", "disabled"), ("b", "green")):
        counter.add(ONE, name, variant)
    counter.add(OTHER, "a", "enabled")
    store.save.side_effect = [HttpError(503, "the database is away", []), None]
    await pass_a_second(clock, store, 2)
    told = {call.args[0]: (call.args[1].app_name, call.args[1].counts) for call in store.save.await_args_list}
    of_one = [ReportedUsage("a", 1, 0, {}), ReportedUsage("a", 0, 2, {}), ReportedUsage("b", 1, 0, {"green": 1})]
    assert told == {ONE: ("ofrep", of_one), OTHER: ("ofrep", [ReportedUsage("a", 1, 0, {})])}
    assert len(log.at("warn")) == 1
    store.save.side_effect = None
    counter.add(ONE, "a", "enabled")
    await pass_a_second(clock, store, 3)
    assert store.save.await_args.args[1].counts == [ReportedUsage("a", 1, 0, {})]
