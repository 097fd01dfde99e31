"""The parent's side of looking up tokens: it answers the questions of workers, because only it asks the upstream."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from flagsvc.proxy.tokens import TokenScope, UnavailableError
from flagsvc.proxy.workers import messages

LEAST_RETRY_S = 1.0
"""The least seconds after which a worker is told to ask again."""
Opened = tuple[int, bool, TokenScope, bool]
"""What a token opens, as `messages.TokenOpened` has it."""
LookUpTokens = Callable[[Sequence[str], bytes, float], Awaitable[Mapping[str, Opened]]]
"""Returns what tokens of a caller from a network open, within some seconds. Those that open nothing are left out.

Raises UnavailableError.
"""


async def answer_question(look_up: LookUpTokens, question: messages.TokenQuestion) -> messages.TokenAnswer:
    """Return the answer to a worker's question about tokens."""
    network = bytes.fromhex(question.network)
    try:
        found = await look_up(question.tokens, network, question.seconds)
    except UnavailableError as error:
        return messages.TokenAnswer(question.number, retry_s=max(error.seconds, LEAST_RETRY_S))
    return messages.TokenAnswer(question.number, [to_message(found.get(token)) for token in question.tokens])


def to_message(opened: Opened | None) -> messages.TokenOpened | None:
    """Return what a token opens as a part of a message."""
    if opened is None:
        return None
    environment, is_server, (name, projects), is_whole = opened
    return messages.TokenOpened(
        environment, is_server, (name, None if projects is None else sorted(projects)), is_whole
    )
