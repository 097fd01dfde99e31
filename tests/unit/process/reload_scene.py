"""A reader of a configuration that changes, with a fake clock; its files are in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from flagsvc.core.errors import FlagsvcError
from flagsvc.process.reload import ConfigurationFiles, Reloader
from flagsvc.settings.load import accepted, resolve
from flagsvc.settings.options import ProxyOptions
from flagsvc.settings.places import Resolved
from flagsvc.testing import FakeClock, RecordingLog
from support.aio import until


def write(folder: Path, name: str, text: str) -> str:
    (folder / "new").write_text(text)
    (folder / "new").rename(folder / name)
    return str(folder / name)


class ReloadScene:
    """A configuration, a reader of it that has begun, and the options it has handed over so far.

    If `refusal` is set, it is raised instead of taking options.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.folder = folder
        self.environment = dict(environment)
        self.refusal: FlagsvcError | None = None
        self.clock, self.log = FakeClock(), RecordingLog()
        self.applied: list[ProxyOptions] = []
        self.reads = 0
        loaded = accepted(resolve(self.environment, None, {}), ProxyOptions)
        source = ConfigurationFiles(self.read, loaded.files)
        self.reload = Reloader(loaded.options, source, self.apply, clock=self.clock, log=self.log, draw=partial(float, 0.5))

    def write(self, name: str, text: str) -> str:
        return write(self.folder, name, text)

    def read(self) -> Resolved:
        self.reads += 1
        return resolve(self.environment, None, {})

    async def apply(self, options: ProxyOptions) -> None:
        """Go on with options."""
        if self.refusal is not None:
            raise self.refusal
        self.applied.append(options)

    async def pass_time(self, seconds: float) -> None:
        """Let time pass without a change of the files, and wait until they were checked."""
        await self.clock.advance(seconds)
        await until(lambda: 2 in self.clock.sleeping)

    async def look(self) -> None:
        """Advance the time until the files were checked once more, and all tasks only wait."""
        [pause] = [each for each in self.clock.sleeping if each == 2]
        await self.clock.advance(pause)
        for _ in range(20):  # what was written may be looked at again, each time in a thread
            await until(lambda: {2, 0.2} & set(self.clock.sleeping))
            if 0.2 not in self.clock.sleeping:
                return
            await self.clock.advance(0.2)

    async def change(self, name: str, text: str) -> None:
        """Replace a file, and look."""
        self.write(name, text)
        await self.look()

    @property
    def events(self) -> list[tuple[str, str]]:
        """The level and the text of each line."""
        return [(line.level, line.event) for line in self.log.lines]
