"""The worker's side of looking up tokens: one question to the parent for a token at a time, refusals are kept for a moment."""

from __future__ import annotations

import asyncio

import pytest

from flagsvc.proxy.tokens import Admission, TokenScope, UnavailableError
from flagsvc.proxy.tokens.book import digest_of
from flagsvc.proxy.tokens.lookup import MAX_WAITING
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers import parent_tokens as module
from flagsvc.proxy.workers.parent_tokens import UNKNOWN_S, ParentTokens
from flagsvc.testing import FakeClock, turns
from support.aio import until

OPENED = Admission(0, False, TokenScope("production", frozenset(["a"])), False)
NETWORK = b"\xcb\x00"
SECONDS = 60.0
Opened = dict[str, Admission]


class Parent:
    """A parent that answers when it is told to."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.questions: list[messages.TokenQuestion] = []
        self.tokens = ParentTokens(self.take, self.clock)

    def take(self, message: messages.Message) -> None:
        assert isinstance(message, messages.TokenQuestion)
        self.questions.append(message)

    async def ask(self, *tokens: str, network: bytes = NETWORK, seconds: float = SECONDS) -> Opened:
        return await self.tokens.ask(tokens, network, asyncio.get_running_loop().time() + seconds)

    async def begin(self, *requests: str | tuple[str, ...], network: bytes = NETWORK) -> list[asyncio.Task[Opened]]:
        """Have callers ask, each about a token or several; return when they wait."""
        given = [(each,) if isinstance(each, str) else each for each in requests]
        tasks = [asyncio.ensure_future(self.ask(*tokens, network=network)) for tokens in given]
        await turns()
        return tasks


async def test_each_gets_its_answer() -> None:
    """Questions have numbers, and answers may come in any order. The network and the time that is left go with the question."""
    parent = Parent()
    known, unknown = await parent.begin("known", "unknown")
    assert [(each.number, each.tokens, each.network) for each in parent.questions] == [
        (1, ["known"], "cb00"),
        (2, ["unknown"], "cb00"),
    ]
    assert all(SECONDS - 10 < each.seconds <= SECONDS for each in parent.questions)
    parent.tokens.resolve(messages.TokenAnswer(2, [None]))
    parent.tokens.resolve(messages.TokenAnswer(1, [OPENED]))
    assert (await known, await unknown) == ({"known": OPENED}, {})


async def test_one_question_for_a_token() -> None:
    """Callers with the same token wait for the same answer. A later caller asks again: the parent knows what is valid now."""
    parent = Parent()
    tasks = await parent.begin(*["known"] * 10)
    assert len(parent.questions) == 1
    tasks[0].cancel()
    await turns()
    parent.tokens.resolve(messages.TokenAnswer(1, [OPENED]))
    assert await asyncio.gather(*tasks[1:]) == [{"known": OPENED}] * 9
    await parent.begin("known")
    assert len(parent.questions) == 2


async def test_one_question_for_a_request() -> None:
    """All tokens of a request are one message. Tokens of earlier requests are left out."""
    parent = Parent()
    first, second = await parent.begin(("a", "b", "c"), ("b", "d"))
    assert [each.tokens for each in parent.questions] == [["a", "b", "c"], ["d"]]
    parent.tokens.resolve(messages.TokenAnswer(2, [OPENED]))
    await turns()
    assert not second.done(), "it waits for the other answer, too"
    parent.tokens.resolve(messages.TokenAnswer(1, [None, OPENED, None]))
    assert (await first, await second) == ({"b": OPENED}, {"b": OPENED, "d": OPENED})
    [third] = await parent.begin(("a", "c", "new"))
    assert parent.questions[2].tokens == ["new"], "the others were refused a moment ago"
    parent.tokens.resolve(messages.TokenAnswer(3, [None]))
    assert await third == {}


@pytest.mark.parametrize("reloaded", [False, True])
async def test_a_refusal_is_kept_for_a_moment(reloaded: bool) -> None:
    """The parent is not asked about it again, and no caller waits. The moment is short, because the parent has its own."""
    parent = Parent()
    [task] = await parent.begin("no")
    parent.tokens.resolve(messages.TokenAnswer(1, [None]))
    assert await task == {} and parent.tokens.is_refused("no") and not parent.tokens.is_refused("other")
    assert await parent.ask("no") == {} and len(parent.questions) == 1
    if reloaded:
        parent.tokens.forget_refused()
    else:
        await parent.clock.advance(UNKNOWN_S)
    assert not parent.tokens.is_refused("no")
    await parent.begin("no")
    assert len(parent.questions) == 2


async def test_it_cannot_be_said_now() -> None:
    """The caller is told when to try again, and the next one asks again."""
    parent = Parent()
    [task] = await parent.begin("t")
    parent.tokens.resolve(messages.TokenAnswer(1, retry_s=7.5))
    with pytest.raises(UnavailableError) as caught:
        await task
    assert caught.value.seconds == 7.5 and not parent.tokens.is_refused("t")
    await parent.begin("t")
    assert len(parent.questions) == 2


async def test_a_parent_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """No caller waits for ever. A late answer counts for callers that still wait. An answer without a question is ignored."""
    monkeypatch.setattr(module, "LATE_S", 0.0)
    parent = Parent()
    with pytest.raises(UnavailableError):
        await parent.ask("t", seconds=0.0)
    [task] = await parent.begin("t")
    assert len(parent.questions) == 1, "the question is still on its way"
    for number in (9, 1, 1):
        parent.tokens.resolve(messages.TokenAnswer(number, [OPENED]))
    assert await task == {"t": OPENED}


@pytest.mark.parametrize("token", ["", "a b", "\xe9", "x" * 1001])
async def test_what_can_be_no_token(token: str) -> None:
    """The parent is not asked about it, and no caller waits."""
    parent = Parent()
    assert parent.tokens.is_refused(token) and await parent.ask(*[token] * 3) == {}
    assert parent.questions == [] and parent.tokens._places.requests.taken == 0


async def test_nothing_stays_of_a_question() -> None:
    """A worker that is asked about ever new tokens keeps no more of them than the refusals, which have a bound."""
    parent = Parent()
    for number in range(300):
        [task] = await parent.begin(f"token-{number}")
        parent.tokens.resolve(messages.TokenAnswer(number + 1, [OPENED if number % 2 else None]))
        await task
    await turns()
    assert not parent.tokens._questions and not parent.tokens._asked
    assert parent.tokens._places.tokens.taken == parent.tokens._places.requests.taken == 0


async def test_a_parent_that_is_slow_gets_no_more_questions() -> None:
    """Only so many tokens wait, of all callers together, and also if these are gone; of one network only so many of these."""
    parent = Parent()
    half = MAX_WAITING // 2
    flood = await parent.begin(*(f"t{each}" for each in range(half + 10)), network=b"bad")
    assert len(parent.questions) == half and [each.done() for each in flood].count(True) == 10
    with pytest.raises(UnavailableError):
        await parent.ask(*(f"more{each}" for each in range(half)), network=b"bad")
    await parent.begin("legitimate", network=b"good")
    assert parent.questions[-1].tokens == ["legitimate"]
    for each in flood:
        each.cancel()
    await turns()
    with pytest.raises(UnavailableError):
        await parent.ask("late", network=b"bad")
    assert len(parent.questions) == half + 1, "the parent has not answered the former ones"


async def test_a_flood_that_the_parent_turns_away() -> None:
    """Its places are taken for a moment longer, so that the parent gets so many questions in a second and no more."""
    parent = Parent()
    [first] = await parent.begin(tuple(f"t{each}" for each in range(MAX_WAITING // 2)))
    parent.tokens.resolve(messages.TokenAnswer(1, retry_s=1.0))
    with pytest.raises(UnavailableError):
        await first
    for number in range(100):
        with pytest.raises(UnavailableError):
            await parent.ask(f"more{number}")
    assert len(parent.questions) == 1
    await until(lambda: parent.tokens._places.tokens.taken == 0)
    await parent.begin("later")
    assert len(parent.questions) == 2


async def test_a_flood_does_not_keep_out_valid_tokens() -> None:
    """The parent is asked about a token that it knows to be valid, also while many others wait. After a refusal it is not."""
    parent = Parent()
    parent.tokens.note_valid([digest_of("known")])
    for number in range(MAX_WAITING):
        await parent.begin(f"t{number}", network=b"%d" % number)
    with pytest.raises(UnavailableError):
        await parent.ask("unknown")
    with pytest.raises(UnavailableError):
        await parent.ask("known", "unknown")
    asked = len(parent.questions)
    [task] = await parent.begin("known")
    assert parent.questions[asked].tokens == ["known"]
    parent.tokens.resolve(messages.TokenAnswer(parent.questions[asked].number, [None]))
    assert await task == {}
    await parent.clock.advance(UNKNOWN_S)
    with pytest.raises(UnavailableError):
        await parent.ask("known")


def test_valid_tokens_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more valid tokens than the bound, those of long ago are like new ones."""
    monkeypatch.setattr(module, "MAX_KNOWN", 3)
    tokens = Parent().tokens
    for number in range(5):
        tokens.note_valid([digest_of(f"t{number}"), digest_of(f"t{number}")])
    assert tokens._count_new([f"t{number}" for number in range(5)]) == 2
