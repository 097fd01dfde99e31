"""Real clients against our proxy: each client of the family through each column of one table.

The clients are unmodified packages of the registries. They run beside each other, on one proxy, while its upstream changes, refuses
and goes away.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import pytest
from clients import BASE, CHANGED, NEW_TOKENS, OWN_NAME, PAYLOAD, REACT_ROWS, Client, enabled_names
from clients_scene import ROWS, Cell, Cells, Scene, clients_scene
from http_tap import Exchange

from support import needs
from support.fake_upstream import FEATURES, Reply
from support.processes import KEY, UPSTREAM_TOKEN, ask
from support.waiting import wait_until

NEW = "new"
FAILURES = (Reply(503), Reply(500, b"<html>"), Reply(403))
REFUSALS = 3
OPEN = {"OPTIONS", "/edge/validate"}
"""Method and path that need no key."""
REFUSED = {401, 403}
ENDURED = {200, 202, 204, 304}
"""The statuses that a client may see: never that its upstream has trouble."""
NOWHERE = ("/api/client/metrics/edge", "/api/client/streaming")
"""Edge sends data about itself to one, and our proxy looks for a stream at the other. The open real server has no such routes."""


def start(scene: Scene) -> Cells:
    """Everybody is ready, and has flags."""
    took = scene.wait(is_there, 60)

    def look(client: Client) -> None:
        assert client.row.id in took, f"not ready; it saw {client.tap.statuses()} and told {client.errors()[:3]}"

    return scene.cells(look)


def evaluate(scene: Scene) -> Cells:
    """Exactly those flags are on that are on for the context, and a segment admits no user from elsewhere."""
    expected = enabled_names(scene.rows)

    def look(client: Client) -> None:
        (ready,) = client.said("ready")
        assert ready["asked"] == client.row.use.asked, ready["asked"]
        names = ready.get("toggles", expected)
        assert names == expected if client.row.keeps_order else sorted(names) == sorted(expected), names
        assert not ready.get("elsewhere"), "on for another region"
        assert client.states() == [BASE], client.states()
        assert client.row.server_side or client.row.post == ("userId" not in client.polls()[0].target)

    return scene.cells(look)


def variant(scene: Scene) -> Cells:
    """A variant comes with its payload, the payload's value as text."""
    wanted = {"name": "green", "enabled": True, "payload": PAYLOAD}

    def look(client: Client) -> None:
        (ready,) = client.said("ready")
        given = {name: ready["variant"].get(name) for name in wanted}
        assert given == wanted, ready["variant"]

    return scene.cells(look)


def another_origin(scene: Scene) -> Cells:
    """A page on another origin asks for permission and can read the entity tag; its browser has nothing to complain about."""
    took = scene.wait(lambda client: client.row not in REACT_ROWS or sends_tag(client))

    def look(client: Client) -> None:
        if client.row not in REACT_ROWS:
            return
        allowed = preflights(client)[0].answered
        assert "authorization" in allowed["access-control-allow-headers"], allowed
        assert all(each.headers["origin"] != client.tap.url for each in client.tap.exchanges), "the same origin"
        assert client.row.id in took, "it could not read the tag"
        assert client.errors() == [], client.errors()

    return scene.cells(look)


def preflights(client: Client) -> list[Exchange]:
    """Return the questions of a browser whether the page may poll."""
    return [each for each in client.tap.exchanges if (each.method, each.path) == ("OPTIONS", client.row.path)]


def sends_tag(client: Client) -> bool:
    """Return whether the SDK in a page sends a tag that it got. A browser adds tags of its own, but these need no permission."""
    return any("if-none-match" in each.headers["access-control-request-headers"] for each in preflights(client))


def change(scene: Scene) -> Cells:
    """A flag that is switched on upstream comes, and goes again."""
    return change_after(scene, mark(scene))


def mark(scene: Scene) -> dict[str, int]:
    """Return how many states each client saw so far."""
    return {client.row.id: len(client.states()) for client in scene.clients}


def change_after(scene: Scene, since: dict[str, int]) -> Cells:
    """Switch a flag on and off. Since `since`, each client must have seen just that, and so have lost no flag."""
    scene.change(NEW)
    came = scene.wait(lambda client: client.states()[-1] == CHANGED)
    scene.change()
    went = scene.wait(lambda client: client.states()[-1] == BASE)

    def look(client: Client) -> None:
        seen = client.states()[since[client.row.id] :]
        assert client.row.id in came and client.row.id in went and seen == [CHANGED, BASE], seen

    return scene.cells(look)


def not_modified(scene: Scene) -> Cells:
    """A poll that brings nothing new is a 304, of the tag that the client got. At `/proxy`, a POST is answered in full."""
    before = {client.row.id: len(client.polls()) for client in scene.clients}
    took = scene.wait(lambda client: len(client.polls()) >= before[client.row.id] + 2)

    def look(client: Client) -> None:
        assert client.row.id in took, "it polls no more"
        (last, *_) = reversed(client.polls())
        assert last.headers.get("if-none-match"), "it sent no tag"
        assert last.status == (304 if client.row.learns_nothing_new_by_304 else 200), last.status

    return scene.cells(look)


def metrics(scene: Scene) -> Cells:
    """The counts come upstream, each once, under the right application, which is registered; unknown flags do not."""

    def arrived(client: Client) -> bool:
        counted = scene.counted(client.row) == {client.row.reports_as: client.row.use.counts}
        return counted and client.row.registered in scene.registered()

    took = scene.wait(arrived)

    def look(client: Client) -> None:
        assert client.row.id in took, (scene.counted(client.row), scene.registered())
        assert scene.registered() <= {OWN_NAME, *(row.registered for row in scene.rows)}, scene.registered()

    return scene.cells(look)


def wrong_key(scene: Scene) -> Cells:
    """With a wrong key, or one for something else, there are no flags; the application can tell."""

    def told(client: Client) -> object:
        stranger = scene.strangers[client.row.id]
        return stranger.polls() and (stranger.errors() or not client.row.sees_errors)

    took = scene.wait(told)

    def look(client: Client) -> None:
        assert client.row.id in took, "a stranger was not refused"
        stranger = scene.strangers[client.row.id]
        asked = [each for each in stranger.tap.exchanges if OPEN.isdisjoint((each.method, each.path))]
        assert {each.status for each in asked} == {client.row.refusal}, asked
        assert all("401" in error for error in stranger.errors()), stranger.errors()
        assert not stranger.said("ready") and not any(any(each.values()) for each in stranger.states())
        check_other_keys(scene, client)

    return scene.cells(look)


def check_other_keys(scene: Scene, client: Client) -> None:
    """Check that the configuration of our proxy opens for server-side tokens alone."""
    row = client.row
    if row.server_side and row.refusal == 401:
        url = scene.strangers[row.id].tap.url + row.polls[1]
        refused = [ask(url, headers={"Authorization": key}).status for key in (KEY, UPSTREAM_TOKEN, "")]
        assert refused == [403 if row.path == "/api" else 401, 401, 401], refused


def refused_upstream(scene: Scene) -> Cells:
    """While the upstream refuses the proxy's token, everybody keeps the flags, and afterwards sees a change."""
    since, end = mark(scene), time.monotonic() + scene.refusal_s
    endure(scene, Reply(401), REFUSALS)
    wait_until(lambda: time.monotonic() >= end, scene.refusal_s + 1)
    scene.upstream.replies.clear()
    return change_after(scene, since)


def endure(scene: Scene, reply: Reply, times: int = 1) -> None:
    """Have the upstream answer like this until it was asked so many times more, and every client has asked twice."""
    known = len(scene.upstream.received(FEATURES, reply.status))
    scene.upstream.replies[FEATURES] = reply
    scene.upstream.wait(lambda: len(scene.upstream.received(FEATURES, reply.status)) >= known + times)
    await_polls(scene)


def await_polls(scene: Scene, times: int = 2) -> None:
    """Wait until every client has asked so many times more."""
    before = {client.row.id: len(client.polls()) for client in scene.clients}
    scene.wait(lambda client: len(client.polls()) >= before[client.row.id] + times)


def failing_upstream(scene: Scene) -> Cells:
    """While the upstream fails and is away, everybody keeps the flags, and afterwards sees a change."""
    since = mark(scene)
    for reply in FAILURES:
        scene.upstream.replies[FEATURES] = reply
        scene.upstream.wait(lambda status=reply.status: scene.upstream.received(FEATURES, status))  # type: ignore[misc]
    scene.upstream.replies.clear()
    scene.line.cut = True
    scene.line.hang_up()
    wait_until(lambda: scene.line.refused >= REFUSALS)
    await_polls(scene)
    scene.line.cut = False
    return change_after(scene, since)


def proxy_away(scene: Scene) -> Cells:
    """While the proxy is away, everybody keeps the flags, and afterwards sees a change; the application may hear of errors."""
    since = mark(scene)
    known = {client.row.id: client.errors() for client in scene.clients}
    for client in scene.clients:
        client.tap.refused, client.tap.cut = 0, True
        client.tap.hang_up()
    scene.wait(lambda client: client.tap.refused >= 2)
    for client in scene.clients:
        client.tap.cut = False
    cells = change_after(scene, since)
    for client in scene.clients:
        client.excused.update(client.errors())
        client.excused.subtract(known[client.row.id])
    return cells


def nothing_lost(scene: Scene) -> Cells:
    """From beginning to end no client lost a flag, heard of an error, saw another status or stopped asking."""
    await_polls(scene)

    def look(client: Client) -> None:
        kept = [name for name, on in BASE.items() if on]
        assert all(state[name] for state in client.states() for name in kept), client.states()
        assert client.errors() == [], client.errors()
        seen = {each.status for each in client.tap.exchanges if each.path not in NOWHERE}
        assert seen <= ENDURED, client.tap.statuses()

    return scene.cells(look)


def new_token(scene: Scene) -> Cells:
    """A new client has its flags with a token that is new upstream, without a change here. When that is revoked, it is refused."""
    scene.upstream.tokens = dict(NEW_TOKENS)
    with scene.newcomers() as newcomers:
        came = scene.wait(lambda client: is_there(newcomers[client.row.id]))
        scene.upstream.tokens = {}
        ended = scene.wait(lambda client: newcomers[client.row.id].polls()[-1].status in REFUSED)

        def look(client: Client) -> None:
            newcomer = newcomers[client.row.id]
            assert client.row.id in came, f"it saw {newcomer.tap.statuses()} and told {newcomer.errors()[:3]}"
            (ready,) = newcomer.said("ready")
            assert ready["asked"] == newcomer.row.use.asked, ready["asked"]
            assert client.row.id in ended, "its token is revoked, and it is answered"

        return scene.cells(look)


def is_there(client: Client) -> bool:
    """Return whether a client is ready, and has its flags."""
    return bool(client.said("ready")) and BASE in client.states()


Column = Callable[[Scene], Cells]
COLUMNS: dict[str, Column] = {
    "start": start,
    "evaluate": evaluate,
    "variant with payload": variant,
    "another origin": another_origin,
    "change seen": change,
    "nothing new": not_modified,
    "metrics": metrics,
    "wrong key": wrong_key,
    "change after upstream 401": refused_upstream,
    "change after upstream away": failing_upstream,
    "change after proxy away": proxy_away,
    "a new token": new_token,
    "no flag lost": nothing_lost,
}
"""In the order in which they happen: the last one looks back at all others. A client that fails in a group is in no later group."""
MINUTE_S = 60.0


def fill(titles: Iterable[str] = COLUMNS, refusal_s: float = 0.0) -> dict[tuple[str, str], Cell]:
    """Run all clients through these columns, and return the cells by row and column."""
    table: dict[tuple[str, str], Cell] = {}
    with clients_scene(refusal_s=refusal_s) as (scene, left_out):
        for title in titles:
            cells = look(COLUMNS[title], scene) | left_out
            table |= {(row, title): cell for row, cell in cells.items()}
            lost = {row for row, cell in cells.items() if cell.wrong}
            left_out |= {row: Cell(f"it failed in the column `{title}`") for row in lost - left_out.keys()}
            scene.clients = [client for client in scene.clients if client.row.id not in lost]
    return table


def look(column: Column, scene: Scene) -> Cells:
    """Return the cells of a column. If nothing could be looked at, every cell says why."""
    try:
        return column(scene)
    except AssertionError as error:
        return {client.row.id: Cell(str(error)) for client in scene.clients}


@pytest.fixture(scope="module")
def table() -> dict[tuple[str, str], Cell]:
    """Give the filled table."""
    return fill()


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("row", [row.id for row in ROWS])
def test_cell(table: dict[tuple[str, str], Cell], row: str, column: str) -> None:
    """The client does what the column asks for (its function says what)."""
    cell = table[row, column]
    if cell.missing:
        needs.missing(cell.missing)
    assert not cell.wrong, cell.wrong


@pytest.mark.long
def test_a_minute_of_refusals() -> None:
    """No client loses a flag, or stops asking, while the upstream refuses the proxy's token for a minute."""
    table = fill(("start", "evaluate", "change after upstream 401", "no flag lost"), refusal_s=MINUTE_S)
    assert {key: cell.wrong for key, cell in table.items() if cell.wrong} == {}
