"""Python imports this at its start. Classes of contexts then get their programs at the first sighting, in every process."""

from __future__ import annotations

from flagsvc.engine.options import CompileOptions
from flagsvc.proxy.extensions import Strategies
from flagsvc.proxy.generations import setup
from flagsvc.settings.options import ProxyOptions

make = setup.make_compile_options


def at_first_sight(options: ProxyOptions, strategies: Strategies) -> CompileOptions:
    """Return the compiler's options with one sighting."""
    made = make(options, strategies)
    made.class_sightings = 1
    return made


setup.make_compile_options = at_first_sight
