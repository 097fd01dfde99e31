"""The naming pattern of a project, which names of new features must match (import validation 4.1, rule 5; 6.3, step 1)."""

from __future__ import annotations

from functools import cached_property

from flagsvc.server.store.errors import CallerError
from flagsvc.server.store.patterns import InvalidPattern, SearchTime, UncheckedNameError, compile_pattern
from flagsvc.server.store.patterns.matching import Search

SHOWN_CHARACTERS = 200
"""Characters of a pattern that messages show when the pattern cannot be checked."""

WHITE_SPACE = (" ", "\\t", "\\s", "\\n", "\\r", "\\f", "\\v")
"""What a pattern must not contain: a space, and the escapes of white space."""


class NamingPattern:
    """The naming pattern of a project during one request, empty for none. All names of the request share one limit of time."""

    def __init__(self, pattern: str | None, example: str | None, description: str | None) -> None:
        self._pattern = pattern or ""
        self._example = example
        self._description = description
        self._time = SearchTime()
        self._verdicts: dict[str, bool | UncheckedNameError] = {}

    @cached_property
    def _search(self) -> Search | bool | UncheckedNameError:
        """The search for names, or the verdict on every name: a pattern that JavaScript rejects accepts every name."""
        try:
            return compile_pattern(self._pattern) if self._pattern else True
        except InvalidPattern:
            return True
        except UncheckedNameError as unchecked:
            return unchecked

    def verdict(self, name: str) -> bool | UncheckedNameError:
        """Return whether a name matches, or why that cannot be checked. Each name is checked once."""
        if not callable(self._search):
            return self._search
        if name not in self._verdicts:
            self._verdicts[name] = self._time.verdict(self._search, name)
        return self._verdicts[name]

    def check(self, name: str) -> None:
        """Raise CallerError (400) for a name that does not match, or that cannot be checked."""
        found = self.verdict(name)
        if isinstance(found, UncheckedNameError):
            raise CallerError(
                "PatternError",
                f'The feature flag name "{name}" cannot be checked against the project\'s naming pattern "{self.short_text}": '
                f"{found.reason}. To create this feature flag, {found.remedy}.",
            )
        if not found:
            message = [{"message": "The flag name does not match the pattern."}]
            raise CallerError("PatternError", self._mismatch(name), message)

    @property
    def short_text(self) -> str:
        """The pattern, shortened if it is long."""
        return self._pattern if len(self._pattern) <= SHOWN_CHARACTERS else f"{self._pattern[:SHOWN_CHARACTERS]}…"

    def _mismatch(self, name: str) -> str:
        """Return the message about a name that does not match."""
        text = f'The feature flag name "{name}" does not match the project\'s naming pattern: "{self._pattern}".'
        if self._example:
            text += f' Here\'s an example of a name that does match the pattern: "{self._example}"."'
        if self._description:
            text += f' The pattern\'s description is: "{self._description}"'
        return text


def pattern_problems(pattern: str | None, example: str | None, description: str | None) -> list[str]:
    """Return what is wrong with a new naming pattern, its example and its description; empty if nothing is."""
    if not pattern:
        given = {"example": example, "description": description}
        return [f"A naming {key} needs a pattern beside it" for key, text in given.items() if text]
    if any(each in pattern for each in WHITE_SPACE):
        return [f'No name of a flag has white space, but the naming pattern "{pattern}" asks for it']
    try:
        search = compile_pattern(pattern)
    except InvalidPattern:
        return [f'The naming pattern "{pattern}" is not a regular expression of JavaScript']
    except UncheckedNameError as unchecked:
        return [_unchecked(pattern, unchecked)]
    fits = not example or SearchTime().verdict(search, example)
    if isinstance(fits, UncheckedNameError):
        return [_unchecked(pattern, fits)]
    return [] if fits else [f'The naming example "{example}" does not match the pattern "{pattern}"']


def _unchecked(pattern: str, why: UncheckedNameError) -> str:
    return f'The naming pattern "{pattern}" cannot be checked: {why.reason}; {why.remedy}'
