"""What parent and workers say to each other: the head of a frame as JSON, raw bytes as its body. Pure.

A `number` names one document, one question, one report or one reload, so that an answer finds who waits for it.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import msgspec

from flagsvc.http.metrics import Key
from flagsvc.proxy.usage import UsageBucket
from flagsvc.proxy.usage.record import UsageWindow, to_wire
from flagsvc.proxy.workers.framing import frame

KEPT = 3
"""Documents that may still be switched to: the upstream's, the bootstrap address's, and one that was held back."""


class Message(msgspec.Struct, tag=True):
    """One message."""


# ---- down, from the parent


class Welcome(Message):
    """The first message: which worker this is, its options by field, and the groups of listening sockets by file descriptor.

    With `warm` a configuration follows at once, and the worker takes no connection before it has it.
    """

    worker: int
    options: dict[str, Any] = msgspec.field(default_factory=dict)
    sockets: list[list[int]] = msgspec.field(default_factory=list)
    warm: bool = False

    def __repr__(self) -> str:
        """Return it without the options: there are secrets among them."""
        return f"Welcome(worker={self.worker})"


class Prepare(Message):
    """Make the document in the body ready to be served, and say so with Prepared."""

    number: int


class Switch(Message):
    """Serve that document from now on, and say so with Switched."""

    number: int


class Checked(Message):
    """What is served was current at this moment, in the seconds of `Clock.monotonic`, which is the same for all processes."""

    moment: float


class Report(Message):
    """Send what was counted now, and say so with Reported."""

    number: int


class Text(Message):
    """The answer to Ask: the metrics of all processes are in the body."""

    number: int


class Adopt(Message):
    """Also take connections of this group of sockets: the worker they belong to is not there."""

    group: int


class Release(Message):
    """Leave this group of sockets to the worker they belong to."""

    group: int


class Reload(Message):
    """Go on with the values of these options, by field; where there are none, read files again that are not options.

    Either is said with Reloaded.
    """

    number: int
    options: dict[str, Any] = msgspec.field(default_factory=dict)

    def __repr__(self) -> str:
        """Return it without the options: there are secrets among them."""
        return f"Reload(number={self.number})"


class Ping(Message):
    """Say with Pong that your loop turns."""


class Drain(Message):
    """The whole is about to end: fail readiness, have callers go elsewhere, and answer those who come."""


class Leave(Message):
    """Take no more connections, finish what has begun, send what was counted, end."""


# ---- up, from a worker


class Serving(Message):
    """The worker takes connections."""


class Prepared(Message):
    """The document is ready; `revision` is what came of it."""

    number: int
    revision: str


class Switched(Message):
    """The document is served."""

    number: int


class Counts(Message):
    """What was counted since the last time: usage, and how much each sample grew, or is now where it is no counter."""

    usage: UsageWindow | None = None
    samples: list[tuple[list[str], float]] = msgspec.field(default_factory=list)


class Reloaded(Message):
    """What Reload said is done."""

    number: int


class Reported(Message):
    """Everything that was counted when Report came has been sent."""

    number: int


class Pong(Message):
    """The answer to Ping."""


class Ask(Message):
    """Somebody asks this worker for the metrics."""

    number: int


Down: TypeAlias = Welcome | Prepare | Switch | Checked | Report | Text | Adopt | Release | Reload | Ping | Drain | Leave
Up: TypeAlias = Serving | Prepared | Switched | Reloaded | Counts | Reported | Pong | Ask


def packed(message: Message, body: bytes = b"") -> list[bytes]:
    """Return the frame of a message as parts to be written one behind the other."""
    return frame(msgspec.json.encode(message), body)


def downward(head: bytes) -> Down:
    """Return what the parent says. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=Down)  # type: ignore[no-any-return,unused-ignore]


def upward(head: bytes) -> Up:
    """Return what a worker says. Raises msgspec.DecodeError."""
    return msgspec.json.decode(head, type=Up)  # type: ignore[no-any-return,unused-ignore]


def counts(bucket: UsageBucket | None, samples: dict[Key, float]) -> Counts | None:
    """Return what is to be sent of what was counted, None where that is nothing."""
    if bucket is None and not samples:
        return None
    return Counts(None if bucket is None else to_wire(bucket), [(list(key), value) for key, value in samples.items()])
