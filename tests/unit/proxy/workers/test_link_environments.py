"""The worker's side with several environments: their documents, their counts, and how they come and go."""

from __future__ import annotations

from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.link import LinkedFeed
from support.aio import asynchronous, until
from support.link_pair import ENVIRONMENTS, pair
from support.polling import document


def names_of(environment: LinkedFeed) -> list[str] | None:
    """Return the toggles that an environment serves."""
    return None if environment.holder.current is None else list(environment.holder.current.names)


@asynchronous
async def test_documents_of_two_environments() -> None:
    """Each has its own documents, which are counted apart. The answers have the number of the environment."""
    async with pair() as both:
        other = both.add(7)
        for environment, name in ((0, "a"), (7, "b")):
            both.parent.send(messages.Prepare(1, environment), document(name))
        both.parent.send(messages.Switch(1, 7))
        await until(lambda: both.of(messages.Switched))
        assert [each.environment for each in both.of(messages.Prepared)] == [0, 7]
        assert both.of(messages.Switched) == [messages.Switched(1, 7)]
        assert (both.holder.current, names_of(other)) == (None, ["b"])


@asynchronous
async def test_messages_about_an_environment_that_is_gone() -> None:
    """They are skipped, and the others are handled: documents, and whether a check went well."""
    async with pair() as both:
        gone = both.add(7)
        both.link.remove_feed(7)
        for environment in (7, 0):
            both.parent.send(messages.Prepare(1, environment), document("a"))
            both.parent.send(messages.Switch(1, environment))
            both.parent.send(messages.Checked(2.5, environment))
            both.parent.send(messages.Failed(environment))
        await until(lambda: both.of(messages.Switched))
        assert both.of(messages.Switched) == [messages.Switched(1, 0)] and len(both.of(messages.Prepared)) == 1
        assert (both.holder.checked_at, both.holder.failures) == (2.5, 1)
        assert (gone.holder.current, gone.holder.checked_at, gone.holder.failures) == (None, None, 0)


@asynchronous
async def test_counts_of_two_environments() -> None:
    """The usage of each has its number. Metrics are those of the process, and are sent once."""
    async with pair() as both:
        other = both.add(7)
        both.counters.count("a", True)
        other.counters.add("a", 0, 2, {})
        both.tally.add(200)
        both.parent.send(messages.CountsRequest(4))
        await until(lambda: both.of(messages.CountsSent))
        counts = both.of(messages.Counts)
        assert [(each.environment, each.usage[0].toggles) for each in counts] == [
            (0, {"a": (1, 0, {})}),
            (7, {"a": (0, 2, {})}),
        ]
        assert both.answers() == 1 and counts[1].samples == []
        other.counters.add("a", 1, 0, {})
        other.counters.finish_report()
        await until(lambda: len(both.of(messages.Counts)) == 3)
        assert both.of(messages.Counts)[2].environment == 7, "a report of any environment is sent at once"


@asynchronous
async def test_the_last_counts_of_an_environment() -> None:
    """They are sent when it is removed, before the parent learns that it is."""
    async with pair() as both:
        other = both.add(7)
        other.counters.count("a", True)
        both.commands.on_reload = lambda: both.link.remove_feed(7)
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await until(lambda: both.of(messages.Reloaded))
        assert [type(each) for each in both.received[-2:]] == [messages.Counts, messages.Reloaded]
        assert 7 in [each.environment for each in both.of(messages.Counts)]


@asynchronous
async def test_a_new_environment_and_its_document() -> None:
    """A document that follows a Reload is for an environment that the worker has from then on."""
    async with pair() as both:
        added: list[LinkedFeed] = []
        both.commands.on_reload = lambda: added.append(both.add(7))
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        both.parent.send(messages.Checked(2.5, 7))
        both.parent.send(messages.Prepare(1, 7), document("b"))
        both.parent.send(messages.Switch(1, 7))
        await until(lambda: both.of(messages.Switched))
        assert names_of(added[0]) == ["b"] and added[0].holder.checked_at == 2.5


@asynchronous
async def test_an_environment_is_ready_before_it_takes_the_place_of_another() -> None:
    """A document that is prepared is served before the Reload that follows."""
    async with pair() as both:
        ready: list[bool] = []
        both.commands.on_reload = lambda: ready.append(both.holder.is_ready)
        both.parent.send(messages.Prepare(1), document("a"))
        await until(lambda: both.of(messages.Prepared))
        both.parent.send(messages.Switch(1))
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await until(lambda: both.of(messages.Reloaded))
        assert ready == [True]


@asynchronous
async def test_a_worker_that_cannot_reload_gives_up() -> None:
    """A file that an environment needs may have changed since the parent read it. Another worker takes the place of this one."""

    def fail() -> None:
        raise RuntimeError("s3cret")

    async with pair() as both:
        both.commands.on_reload = fail
        both.parent.send(messages.Reload(5, ENVIRONMENTS))
        await both.parent.closed.wait()
        await until(lambda: both.commands.leave_calls)
        assert both.of(messages.Reloaded) == [] and both.log.at("error") == ["a worker gives up"]
        assert "s3cret" not in repr(both.log.lines)
