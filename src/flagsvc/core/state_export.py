"""Recognises a state export, which servers of the family wrote before they had batch exports. Nothing here reads such a file.

`GET /api/admin/state/export` gives it: one object with a `version` (to 4) and everything of a server in lists.
"""

from __future__ import annotations

PARTS = frozenset(
    {
        *("strategies", "projects", "tagTypes", "tags", "featureTags", "featureStrategies", "environments"),
        *("featureEnvironments", "featureStrategySegments"),
    }
)
"""Lists of a state export. A client-features document has a `version` and none of them, a data set has them and no `version`."""
WHAT_TO_DO = (
    "flagsvc does not read it: import it into a server that has both /api/admin/state/import and /api/admin/features-batch/export,"
    " and run `flagsvc move` from there, or `flagsvc export` for each environment"
)


def about_state_export(value: object) -> str:
    """Return what a state export is and what to do, as it continues the name of a file; the empty text for any other value."""
    for each in (value, value.get("data") if isinstance(value, dict) else None):
        if isinstance(each, dict) and "version" in each and not PARTS.isdisjoint(each):
            number = each["version"]
            version = f" (version {number})" if isinstance(number, int) and number in range(100) else ""
            return f"is a state export of an old server{version}; {WHAT_TO_DO}"
    return ""
