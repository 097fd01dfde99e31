"""The parsed document: the configuration, checked and typed, before it is compiled."""

from __future__ import annotations

import json
from typing import TypeAlias

from mypy_extensions import mypyc_attr

from flagsvc.engine.values.cidr import AddressList, CidrSet

Wanted: TypeAlias = frozenset[str] | str
"""The variants that satisfy a dependency: a set of names, or a text with the names in it."""


@mypyc_attr(acyclic=True)
class ConstraintSpec:
    """One constraint. `key` is equal for equal constraints, and `path` is its position in the document.

    A list of values that is `unreadable` never holds. For a long list the set of its values, or its networks, are already made,
    because that takes time.
    """

    def __init__(
        self,
        path: str,
        field: str,
        operator: str,
        values: tuple[str, ...],
        value: object,
        inverted: bool,
        insensitive: bool,
        unreadable: bool = False,
    ) -> None:
        self.path = path
        self.field = field
        self.operator = operator
        self.values = values
        self.value = value
        self.inverted = inverted
        self.insensitive = insensitive
        self.unreadable = unreadable
        self.members: set[str] | None = None
        self.networks: CidrSet | None = None

    def unique(self) -> set[str]:
        return set(self.values) if self.members is None else self.members

    def cidrs(self) -> CidrSet:
        """Return the values as networks."""
        return CidrSet(list(self.values)) if self.networks is None else self.networks

    def key(self) -> tuple[object, ...]:
        """Return a key that is equal for equal constraints."""
        return (self.field, self.operator, self.values, self.single(), self.inverted, self.insensitive, self.unreadable)

    def single(self) -> tuple[str, object]:
        """Return a key that is equal for equal single values."""
        raw = self.value
        return (type(raw).__name__, json.dumps(raw) if isinstance(raw, (list, dict)) else raw)


@mypyc_attr(acyclic=True)
class OverrideSpec:
    """One override of a variant: a context with one of the values in the field gets the variant."""

    def __init__(self, field: str, values: tuple[str, ...]) -> None:
        self.field = field
        self.values = values


@mypyc_attr(acyclic=True)
class VariantSpec:
    """One variant. `payload` and `stickiness` are None if the document has none.

    `stated` is the weight as in the document. For an odd one, `weight` is a whole number that draws the same, or about the same.
    """

    def __init__(
        self,
        name: str,
        weight: int,
        stickiness: str | None,
        payload: dict[str, str] | None,
        overrides: list[OverrideSpec],
    ) -> None:
        self.name = name
        self.weight = weight
        self.stated: object = weight
        self.stickiness = stickiness
        self.payload = payload
        self.overrides = overrides


@mypyc_attr(acyclic=True)
class StrategySpec:
    """One strategy of a feature. A constraint that is none is None. `segments` are the identities of its segments.

    `group` and `stickiness` are what its variants are drawn with: parameters as JavaScript writes them, null and missing, too.
    For a long list of `addresses` its networks are already made, because that takes time.
    """

    def __init__(
        self,
        path: str,
        name: str,
        parameters: dict[str, str],
        constraints: list[ConstraintSpec | None],
        segments: list[str],
        variants: list[VariantSpec],
    ) -> None:
        self.path = path
        self.name = name
        self.parameters = parameters
        self.constraints = constraints
        self.segments = segments
        self.variants = variants
        self.group = parameters.get("groupId", "undefined")
        self.stickiness: str | None = parameters.get("stickiness")
        self.addresses: AddressList | None = None


@mypyc_attr(acyclic=True)
class DependencySpec:
    """One parent of a feature. No `variants` means any variant; with `text`, each variant whose name is a part of the text."""

    def __init__(self, feature: str, enabled: bool, variants: tuple[str, ...], text: str = "") -> None:
        self.feature = feature
        self.enabled = enabled
        self.variants = variants
        self.text = text

    def wanted(self) -> Wanted:
        """Return what contains the names of the variants that satisfy the dependency; empty for any variant."""
        return self.text or frozenset(self.variants)


@mypyc_attr(acyclic=True)
class FeatureSpec:
    """One feature (toggle)."""

    def __init__(
        self,
        name: str,
        enabled: bool,
        impression_data: bool,
        strategies: list[StrategySpec],
        variants: list[VariantSpec],
        dependencies: list[DependencySpec],
    ) -> None:
        self.name = name
        self.enabled = enabled
        self.impression_data = impression_data
        self.strategies = strategies
        self.variants = variants
        self.dependencies = dependencies


@mypyc_attr(acyclic=True)
class DocumentProblem:
    """A malformed value: its path, its toggle, and what was expected.

    The part with the value is left out of the snapshot, or it is `served` as the reference serves it.
    """

    def __init__(self, path: str, toggle: str | None, message: str, served: bool = False) -> None:
        self.path = path
        self.toggle = toggle
        self.message = message
        self.served = served

    def __str__(self) -> str:
        named = f" of toggle `{self.toggle}`" if self.toggle is not None else ""
        return f"{self.path}{named}: {self.message}"


@mypyc_attr(acyclic=True)
class SegmentSpec:
    """One segment. `identity` is its id as JSON text, so that the number 1 and the text "1" differ."""

    def __init__(self, identity: str, name: str, constraints: list[ConstraintSpec | None]) -> None:
        self.identity = identity
        self.name = name
        self.constraints = constraints
