"""Random configuration documents. Document `number` of a `seed` is always the same one."""

from __future__ import annotations

import random
from typing import Any

import diff_words as words

Json = dict[str, Any]
MARKER = "marker-"
SINGLE_VALUES = [None, 0, 5, 5.5, -1, True, False, 1642856400000, "\u00a05 "]


def document(seed: str, number: int) -> Json:
    """Return a document with some ten toggles, and a marker among them, which tells which document a proxy has."""
    maker = Maker(random.Random(f"document {seed} {number}"))
    return with_marker(maker.document(), f"{seed}-{number}")


def with_marker(content: Json, number: object) -> Json:
    """Return the document with a toggle at its end that is always on and carries `number` in its name."""
    marker = {"name": f"{MARKER}{number}", "enabled": True, "strategies": [], "impressionData": False}
    return {**content, "features": [*content.get("features", []), marker]}


class Maker:
    """Makes parts of documents with one random source."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.names: list[str] = []
        self.segments: list[Json] = []

    def chance(self, share: float) -> bool:
        """Return True with this probability."""
        return self.rng.random() < share

    def document(self) -> Json:
        """Return a document of toggles and segments."""
        self.names = [self.name(number) for number in range(self.rng.randint(6, 12))]
        self.segments = [self.segment() for _ in range(self.rng.randint(0, 4))]
        content: Json = {"version": 2, "features": [self.feature(name) for name in self.names]}
        if self.segments or self.chance(0.5):
            content["segments"] = self.segments
        return content

    def name(self, number: int) -> str:
        """Return a name; now and then the document has the name already."""
        if self.names and self.chance(0.02):
            return self.rng.choice(self.names)
        return f"{self.rng.choice(words.NAMES)}.{number}"

    def segment(self) -> Json:
        """Return a segment; ids repeat now and then, the constraints may be missing."""
        content: Json = {"id": self.rng.randint(1, 6), "name": "segment"}
        if not self.chance(0.05):
            content["constraints"] = self.some(self.constraint, 0, 2)
        return content

    def some(self, make: Any, least: int, most: int) -> list[Any]:
        """Return between `least` and `most` of what `make` makes."""
        return [make() for _ in range(self.rng.randint(least, most))]

    def feature(self, name: str) -> Json:
        """Return a toggle: fields that may be absent sometimes are."""
        content: Json = {"name": name, "enabled": not self.chance(0.08), "strategies": self.some(self.strategy, 0, 3)}
        if self.chance(0.02):
            content["enabled"] = None
        extras: Json = {"type": "release", "project": "default", "stale": False, "description": None}
        content |= {key: value for key, value in extras.items() if self.chance(0.5)}
        if not self.chance(0.03):
            content["impressionData"] = self.chance(0.3)
        if self.chance(0.35):
            content["variants"] = self.some(lambda: self.variant(overrides=True), 0, 4)
        elif self.chance(0.1):
            content["variants"] = None
        if self.chance(0.15):
            content["dependencies"] = self.some(self.dependency, 0, 2)
        return content

    def dependency(self) -> Json:
        """Return a dependency on another toggle, itself, or one that is missing."""
        content: Json = {"feature": self.rng.choice([*self.names, "missing.parent"])}
        if self.chance(0.5):
            content["enabled"] = self.rng.choice([True, True, False, None])
        if self.chance(0.1):
            content["variants"] = None
        elif self.chance(0.4):
            content["variants"] = self.rng.sample(["a", "b", "c", "Ω", "disabled"], self.rng.randint(0, 3))
        return content

    def strategy(self) -> Json:
        """Return one of the eight built-in strategies, or one of an unknown name."""
        kind = self.rng.choices(list(STRATEGIES), [FREQUENCY.get(name, 2) for name in STRATEGIES])[0]
        content: Json = {"name": kind, "parameters": STRATEGIES[kind](self) if self.chance(0.97) else {}}
        if kind == "default" and self.chance(0.4):
            del content["parameters"]
        if self.chance(0.5):
            content["constraints"] = self.some(self.constraint, 0, 2) if self.chance(0.95) else None
        if self.chance(0.2):
            content["segments"] = (
                self.some(lambda: self.rng.randint(1, 7), 0, 2) if self.chance(0.95) else self.rng.choice([None, ["1"]])
            )
        if self.chance(0.2) and "parameters" in content and content["parameters"].get("groupId", "") is not None:
            content["variants"] = self.some(lambda: self.variant(overrides=self.chance(0.3)), 0, 3)
        if self.chance(0.1):
            content |= {"id": "3", "title": "ü", "sortOrder": 1, "disabled": self.chance(0.3)}
        return content

    def variant(self, *, overrides: bool) -> Json:
        """Return a variant; those of one toggle may share a name."""
        content: Json = {"name": self.rng.choice(["a", "b", "c", "Ω", "disabled", "v " + self.rng.choice(words.NAMES)])}
        content["weight"] = self.rng.choice([0, 1, 10, 333, 333, 500, 1000])
        if self.chance(0.5):
            content["stickiness"] = self.rng.choice(words.STICKINESS)
        if self.chance(0.5):
            content["payload"] = self.rng.choice(words.PAYLOADS)
        if self.chance(0.5):
            content["weightType"] = self.rng.choice(["fix", "variable"])
        if overrides and self.chance(0.4):
            content["overrides"] = self.some(self.override, 0, 2)
        return content

    def override(self) -> Json:
        """Return an override of a variant for some values of a context field."""
        field = self.rng.choice(["userId", "region", "appName", "sessionId", "remoteAddress", "missing", "größe"])
        return {"contextName": field, "values": self.rng.choices(words.FIELDS[field], k=self.rng.randint(0, 4))}

    def constraint(self) -> Json:
        """Return a constraint of any operator; its values often occur in the field."""
        operators, fields, values = words.FAMILIES[self.rng.choice(list(words.FAMILIES)[: None if self.chance(0.2) else -1])]
        field = self.rng.choice(fields if self.chance(0.85) else list(words.FIELDS))
        content: Json = {"contextName": field, "operator": self.rng.choice(operators), "values": self.values(field, values)}
        if values and not self.chance(0.03):
            content["value"] = self.rng.choice(values if self.chance(0.95) else SINGLE_VALUES)
        for flag in ("inverted", "caseInsensitive"):
            if self.chance(0.5):
                content[flag] = self.rng.choice([True, True, False, False, None])
        return self.without_some(content)

    def without_some(self, constraint: Json) -> Json:
        """Return the constraint, sometimes without a field that it can do without."""
        takes_one = constraint["operator"].startswith(("NUM_", "DATE_", "SEMVER_", "REGEX"))
        spare = ["contextName", *(["values"] if takes_one else []), *(["operator"] if constraint["operator"] == "BOGUS" else [])]
        if self.chance(0.05):
            del constraint[self.rng.choice(spare)]
        return constraint

    def values(self, field: str, family: list[str]) -> list[str]:
        """Return the list of a constraint: of the field's values, of the family's, and blanks."""
        known = family or words.FIELDS[field]
        chosen = self.rng.choices(known, k=self.rng.randint(0, 4))
        if self.chance(0.3):
            chosen.append(self.rng.choice(words.BLANKS))
        if self.chance(0.2):
            chosen.append(self.cut(self.rng.choice(known)))
        if self.chance(0.1):
            chosen.append(f" {self.rng.choice(known)}\u00a0")
        return chosen

    def cut(self, text: str) -> str:
        """Return a piece of `text`."""
        start = self.rng.randint(0, len(text))
        return text[start : start + self.rng.randint(0, 3)]

    def rollout(self) -> Any:
        """Return a percentage: text as a rule, numbers and nonsense sometimes."""
        return self.rng.choice(words.ROLLOUTS if self.chance(0.85) else words.ODD_ROLLOUTS)

    def group(self) -> Json:
        """Return the parameter groupId: a text as a rule, a number, null or nothing sometimes."""
        return (
            self.rng.choice([{}, {"groupId": None}, {"groupId": 7}])
            if self.chance(0.1)
            else {"groupId": self.rng.choice(words.GROUPS)}
        )

    def gradual(self) -> Json:
        """Return the parameters of a strategy of the older kind of rollout."""
        return {"percentage": self.rollout(), **self.group()}

    def flexible(self) -> Json:
        """Return the parameters of a flexible rollout; stickiness may be absent or empty."""
        content = {"rollout": self.rollout(), **self.group()}
        if not self.chance(0.1):
            content["stickiness"] = self.rng.choice(words.STICKINESS if self.chance(0.95) else [""])
        return content

    def users(self) -> Json:
        """Return the parameters of userWithId: a list in one text, with blanks and empty entries."""
        separator = self.rng.choice([",", ", ", " , ", ",,", ", \t"])
        return {"userIds": separator.join(self.rng.choices(words.USERS, k=self.rng.randint(0, 12)))}

    def addresses(self) -> Json:
        """Return the parameters of remoteAddress: addresses and ranges in one text."""
        return {
            "IPs": self.rng.choice([",", ", "]).join(self.rng.choices(words.RANGES + words.ADDRESSES, k=self.rng.randint(0, 4)))
        }

    def hosts(self) -> Json:
        """Return the parameters of applicationHostname."""
        return {"hostNames": self.rng.choice(words.HOSTS)}


def _random(maker: Maker) -> Json:
    return {"percentage": maker.rollout()}


FREQUENCY = {"flexibleRollout": 6, "default": 4, "gradualRolloutRandom": 0.5, "someUnknownStrategy": 1}  # 2 where none is given

# Built-in strategy, or none of them → how its parameters are made.
STRATEGIES: dict[str, Any] = {
    "default": lambda _: {},
    "flexibleRollout": Maker.flexible,
    "gradualRolloutUserId": Maker.gradual,
    "gradualRolloutSessionId": Maker.gradual,
    "gradualRolloutRandom": _random,
    "userWithId": Maker.users,
    "remoteAddress": Maker.addresses,
    "applicationHostname": Maker.hosts,
    "someUnknownStrategy": lambda _: {"anything": "x"},
}
