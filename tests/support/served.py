"""An environment of the callers' side, without an upstream."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random

from flagsvc.engine.compile import compile_document
from flagsvc.proxy.api.service import Service
from flagsvc.proxy.configuration import ConfigurationDocument, Holder
from flagsvc.proxy.services import CallersSide, make_counters
from flagsvc.proxy.setup import ProxySetup


class Served:
    """An environment whose configuration is what a test has it serve; none at first."""

    def __init__(self, number: int, setup: ProxySetup, callers: CallersSide) -> None:
        self.number = number
        self.setup = setup
        self.holder = Holder()
        self.counters = make_counters(setup, self.holder)
        self.service: Service = callers.make_service(setup, self.holder, self.counters, Random(1))

    def serve(self, document: Mapping[str, object]) -> None:
        """Use a client-features document as the configuration."""
        compiled = compile_document(document, self.setup.compile_options)
        self.holder.replace(compiled.snapshot, ConfigurationDocument(json.dumps(document).encode(), '"t"'), 0)
