"""The input of the compiler beside the document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from flagsvc.engine.strategies import CustomStrategy

CLASS_BYTES: Final = 8 * 1024 * 1024


class CompileOptions:
    """The input of the compiler beside the document.

    `hash_encoding` is `low-byte` or `utf8`; `hostname` this machine's name (strategy applicationHostname); `project` and
    `name_prefix` leave other features out; `fold` False keeps the nodes that the configuration decides, for explanations;
    `code_digest` stands for the custom code in the revision. `class_bytes` is the limit of the memory for classes of
    contexts, 0 for none. A class gets one when it was seen `class_sightings` times, 1 or 2.
    """

    def __init__(
        self,
        *,
        hash_encoding: str = "low-byte",
        hostname: str = "",
        variant_feature_state: bool = False,
        custom_strategies: Mapping[str, CustomStrategy] | None = None,
        project: str | None = None,
        name_prefix: str | None = None,
        fold: bool = True,
        code_digest: str = "",
        class_bytes: int = CLASS_BYTES,
        class_sightings: int = 2,
    ) -> None:
        self.hash_encoding = hash_encoding
        self.hostname = hostname
        self.variant_feature_state = variant_feature_state
        self.custom_strategies: Mapping[str, CustomStrategy] = {} if custom_strategies is None else custom_strategies
        self.project = project
        self.name_prefix = name_prefix
        self.fold = fold
        self.code_digest = code_digest
        self.class_bytes = class_bytes
        self.class_sightings = class_sightings

    def identity(self, by_host: bool) -> list[object]:
        """Return the options that can change an answer. The hostname counts only if `by_host`, because replicas differ in it."""
        names = sorted(self.custom_strategies)
        hostname = self.hostname if by_host else ""
        state = [self.hash_encoding, hostname, self.variant_feature_state, self.project, self.name_prefix]
        return [*state, names, self.code_digest]
