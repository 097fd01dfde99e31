"""The event stream of the flag server: open to users with a session, until the session ends; it tells changes and arrivals.

The page of the proxies: who polls, and whether a change has arrived at each.
"""

from __future__ import annotations

import asyncio
import html
import re
from typing import Any

from flagsvc.pages.live import MAX_OF_ONE, EventStreams
from flagsvc.server.api.pollers import KEPT_COMMITS, Commit
from flagsvc.testing import FakeClock
from support.aio import until
from support.flagservers import ADMIN_SECRET, BACKEND_SECRET, EDITOR_SECRET, USER_SECRET, AppClient
from support.page_forms import Visitor, pass_time
from support.processes import Answer

GIVEN = {"features": [{"name": "a"}]}
CLOCK = FakeClock


class Listener:
    """An open stream. `text` is what came."""

    def __init__(self, client: AppClient, **headers: str) -> None:
        self.status = 0
        self.text = ""
        pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
        path = "/ui/stream"
        scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode(), "headers": pairs}
        self.task = asyncio.create_task(client.app({**scope, "query_string": b""}, self.receive, self.send))

    async def receive(self) -> Any:
        """Stay."""
        await asyncio.Event().wait()

    async def send(self, message: Any) -> None:
        """Take a part of the answer."""
        self.status = message.get("status", self.status)
        self.text += message.get("body", b"").decode()


def test_who_may_listen(client: AppClient) -> None:
    """A stream needs a session or a token of the admin API. HEAD opens none, and there is no data."""
    assert client.get("/ui/stream", token=None).status == 303
    assert client.get("/ui/stream", token="unknown").status == 401
    answer: Answer = client.ask("HEAD", "/ui/stream")
    assert answer.status == 200 and answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store" and client.server.streams.count == 0
    assert client.get("/ui/stream.json").status == 404


async def test_changes_are_told_until_the_session_ends(client: AppClient) -> None:
    """A change and its arrival come as events without names of flags. After signing out the next heartbeat ends the stream."""
    object.__setattr__(client.server, "streams", EventStreams(beat_s=0.05))
    visitor = await asyncio.to_thread(Visitor, client)
    listener, other = Listener(client, cookie=visitor.cookie or ""), Listener(client, authorization=USER_SECRET)
    await until(lambda: client.server.streams.count == 2)
    assert (await asyncio.to_thread(visitor.send, "/flags/a/development/on")).status == 303
    await until(lambda: "event: revision" in listener.text)
    names = {"unleash-appname": "web", "unleash-instanceid": "one"}
    await asyncio.to_thread(client.get, "/api/client/features", token=BACKEND_SECRET, headers=names)
    await until(lambda: "event: arrived" in listener.text)
    assert listener.status == 200 and '"a"' not in listener.text
    await asyncio.to_thread(visitor.send, "/sign-out")
    await asyncio.wait_for(listener.task, 10)
    assert client.server.streams.count == 1 and not other.task.done()
    client.server.streams.end_all()
    await asyncio.wait_for(other.task, 10)


async def test_one_person_does_not_take_all(client: AppClient) -> None:
    """All sessions and tokens of a person hold a few streams together; a further one is a 503, and others get theirs."""
    visitor = await asyncio.to_thread(Visitor, client)
    streams, cookie = client.server.streams, visitor.cookie or ""
    held = [Listener(client, cookie=cookie) for _ in range(MAX_OF_ONE)]
    await until(lambda: streams.count == MAX_OF_ONE)
    for more in (Listener(client, cookie=cookie), Listener(client, authorization=USER_SECRET)):
        await asyncio.wait_for(more.task, 10)
        assert more.status == 503 and "8 of your pages are open" in more.text
    others = [Listener(client, authorization=secret) for secret in (EDITOR_SECRET, ADMIN_SECRET)]
    await until(lambda: streams.count == MAX_OF_ONE + len(others))
    assert {each.status for each in (*held, *others)} == {200}
    streams.end_all()
    await asyncio.gather(*(asyncio.wait_for(each.task, 10) for each in (*held, *others)))


def test_listening_is_no_use_of_a_session(client: AppClient, clock: FakeClock) -> None:
    """A session that only has an open stream ends after twelve hours, as one without."""
    secret = (Visitor(client).cookie or "").partition("=")[2]
    keyring = client.server.keyring
    assert keyring.is_valid(secret) and keyring.is_valid(USER_SECRET) and not keyring.is_valid("unknown")
    pass_time(clock, 12 * 3600 - 1)
    assert keyring.is_valid(secret)
    pass_time(clock, 2)
    assert not keyring.is_valid(secret)


def poll(client: AppClient, instance: str, tag: str | None = None, app: str = "web") -> str:
    """Poll as a proxy does, and return the tag of the answer."""
    names = {"unleash-appname": app, "unleash-instanceid": instance, "unleash-sdk": "flagsvc:1.0"}
    answer = client.get("/api/client/features", token=BACKEND_SECRET, headers={**names, "if-none-match": tag})
    assert answer.status == (200 if tag is None else 304) or tag is not None
    return answer.headers["etag"]


def rows(visitor: Visitor) -> dict[str, Any]:
    """Return the rows of the page, by instance."""
    return {each["instanceId"]: each for each in visitor.data("/proxies")["proxies"]}


def test_a_change_arrives(client: AppClient, clock: FakeClock) -> None:
    """After a change an instance is behind until its next poll; the page counts those that have it."""
    visitor = Visitor(client)
    assert "No proxy" in visitor.see("/proxies").text
    tags = {each: poll(client, each) for each in ("one", "two")}
    assert "2 of 2" in visitor.see("/proxies").text
    visitor.send("/flags/a/development/on")
    assert {each["newest"] for each in rows(visitor).values()} == {False}
    pass_time(clock, 15)
    poll(client, "one", tags["one"])
    found = rows(visitor)
    assert (found["one"]["newest"], found["two"]["newest"]) == (True, False)
    assert found["one"]["revision"] > found["two"]["revision"] and found["one"]["interval"] == 15.0
    page = visitor.see("/proxies").text
    assert "1 of 2" in page and "an older one" in page and "flagsvc:1.0" in page
    pass_time(clock, 61)
    poll(client, "one")
    assert "1 of 1" in visitor.see("/proxies").text and rows(visitor)["two"]["gone"]


def told_of(visitor: Visitor, place: str) -> str:
    """Return what the strip of a page says of the arrival, without marks."""
    found = re.search(r'<span id="arrival".*?</span>', visitor.see(place).text, re.DOTALL)
    assert found is not None
    return html.unescape(re.sub(r"<[^>]+>", "", found[0]))


def test_the_strip_says_where_a_change_has_arrived(client: AppClient, clock: FakeClock) -> None:
    """The page where the change was made says at how many, after which time, and who is missing, and so does a live part of it."""
    visitor = Visitor(client)
    switched = visitor.send("/flags/a/development/on").headers["location"].removeprefix("/ui")
    assert told_of(visitor, switched) == "No proxy has asked yet."
    tags = {each: poll(client, each) for each in ("one", "two", "three")}
    pass_time(clock, 10)
    place = visitor.send("/flags/a/development/off", back="/flags?q=a").headers["location"].removeprefix("/ui")
    assert place.startswith("/flags?q=a&undo=")
    arrived = f"/arrived/{place.partition('undo=')[2]}"
    page = visitor.see(place).text
    assert f'data-hx-get="/ui{arrived}"' in page and 'data-live="/ui/stream"' in page
    waiting = [f"{each}), which asked just now" for each in ("three", "two", "one")]
    assert told_of(visitor, place) == f"Arrived at 0 of 3 proxies. Not yet at web ({', web ('.join(waiting)}."
    for instance, seconds in (("one", 0.25), ("two", 3)):
        pass_time(clock, seconds)
        poll(client, instance, tags[instance])
    pass_time(clock, 120)
    for path in (place, arrived):
        told = "Arrived at 2 of 3 proxies after 3.2 s. Not yet at web (three), which asked 2 minutes ago."
        assert told_of(visitor, path) == told
    [missing] = visitor.data(arrived)["arrival"]["missing"]
    assert missing["instanceId"] == "three"
    poll(client, "three", tags["three"])
    assert told_of(visitor, arrived) == "Arrived at 3 of 3 proxies after 2 min."
    assert "every 15s" not in visitor.see(arrived).text


def test_a_change_of_which_the_server_knows_no_time(client: AppClient, clock: FakeClock) -> None:
    """A server that did not make the change, or has forgotten it, says in words why it names no time."""
    visitor = Visitor(client)
    tag = poll(client, "one")
    place = visitor.send("/flags/a/development/on").headers["location"].removeprefix("/ui")
    for number in range(KEPT_COMMITS):
        client.server.pollers.note_commit(str(number), Commit(number, 0.0))
    pass_time(clock, 1)
    assert "when" not in told_of(visitor, place)
    poll(client, "one", tag)
    words = "this server does not know when: another server made the change, or it restarted since"
    assert told_of(visitor, place) == f"Arrived at 1 of 1 proxy ({words})."


def test_a_change_that_proxies_do_not_need(client: AppClient, clock: FakeClock) -> None:
    """A proxy of another environment does not count; a proxy that has asked since and got the same flags has words of its own."""
    visitor = Visitor(client)
    tag = poll(client, "one")
    place = visitor.send("/flags/a/production/on").headers["location"].removeprefix("/ui")
    assert told_of(visitor, place) == "No proxy asks for these flags now." and rows(visitor)["one"]["newest"]
    made = visitor.send("/segments/new", name="s", conditions="0", do="save").headers["location"].removeprefix("/ui")
    pass_time(clock, 1)
    poll(client, "one", tag)
    assert told_of(visitor, made) == "Nothing changes for the proxy, which has asked since."


def test_whose_arrival_is_told(client: AppClient) -> None:
    """A change that gives proxies no other flags has no arrival, and neither has what another user did."""
    visitor = Visitor(client)
    done = visitor.send("/flags/a/development/on").headers["location"].partition("undo=")[2]
    for secret, action, status in (
        (USER_SECRET, done, 200),
        (EDITOR_SECRET, done, 404),
        (USER_SECRET, f"{done}x", 404),
        (USER_SECRET, "nothing", 404),
    ):
        assert Visitor(client, secret).see(f"/arrived/{action}").status == status, action
    made = visitor.send("/new-tag-type", name="team", do="save").headers["location"].removeprefix("/ui")
    page = visitor.see(made).text
    assert "You created the tag type team" in page and 'id="arrival"' not in page


def test_hostile_names(client: AppClient) -> None:
    """What an instance calls itself is shown as text."""
    poll(client, "<script>i</script>", app="<script>a</script>")
    page = Visitor(client).see("/proxies").text
    assert "<script>a" not in page and "&lt;script&gt;a&lt;/script&gt;" in page
