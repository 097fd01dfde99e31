"""Stores one generation after the other in a folder, as fast as it can, in a process that a test kills.

`python storage_writer.py FOLDER`: each line on standard input, `NUMBER HOW AT`, starts a child that begins with that generation.
HOW tells how the child ends. `moment`: the test kills it. `byte`: after the first generation, the kernel kills it when a file has
AT bytes. `step`: after the first generation, it kills itself before step number AT on files. Standard output has `pid N` at its
start, the number of each generation when it is stored, and `ended` when the child has ended.
"""

from __future__ import annotations

import os
import resource
import signal
import sys
from pathlib import Path

from flagsvc.proxy.configuration.stores import FileStore

KEY = "0123abc"
REPEATS = 60_000
STEPS = {"open", "os.rename", "os.remove", "os.scandir", "os.mkdir"}
"""What Python tells of before it does it, as far as it is about files."""


def generation(number: int) -> bytes:
    """Return the data of the generation with this number: a few hundred kilobytes."""
    return b"%d " % number * REPEATS


def write(folder: Path, number: int, how: str, at: int) -> None:
    """Store generations from this number on, for as long as the parent lives."""
    store, parent, first = FileStore(folder), os.getppid(), number
    while os.getppid() == parent:
        store.set(KEY, generation(number))
        os.write(1, b"%d\n" % number)
        if number == first and how == "byte":
            end_at_byte(at)
        if number == first and how == "step":
            end_at_step(at)
        number += 1


def end_at_byte(at: int) -> None:
    """Have the kernel end this process when it writes beyond so many bytes of a file; those before are written."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (at, at))


def end_at_step(at: int) -> None:
    """Kill this process before the so-manieth step from now on."""
    left = [at]

    def count(event: str, _: object) -> None:
        left[0] -= event in STEPS
        if left[0] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


def main(folder: Path) -> None:
    """Start a child for each line, and wait for its end."""
    for line in sys.stdin:
        number, how, at = line.split()
        child = os.fork()
        if not child:
            write(folder, int(number), how, int(at))
            os._exit(0)
        os.write(1, b"pid %d\n" % child)
        os.waitpid(child, 0)
        os.write(1, b"ended\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
