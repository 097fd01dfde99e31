"""Calls about segments."""

from __future__ import annotations

from typing import Any

from support.server_pair import ADMIN, MEMBER, OWNER, READER, WRITER, IntendedDifference, Step, delete, get, post, put

PATH = "/api/admin/segments"
OF = f"{PATH}/strategies"


def constraint(**given: Any) -> dict[str, Any]:
    """Return a valid constraint except for the given members."""
    return {"contextName": "userId", "operator": "IN", "values": ["a"], **given}


def segment(name: Any, *constraints: dict[str, Any], **given: Any) -> dict[str, Any]:
    """Return a segment with one constraint, or these."""
    return {"name": name, "constraints": list(constraints) or [constraint()], **given}


def one(operator: str, value: Any = None, **given: Any) -> dict[str, Any]:
    """Return a constraint of one value, or of none."""
    return constraint(operator=operator, values=[], **({} if value is None else {"value": value}), **given)


def values(count: int) -> dict[str, Any]:
    return constraint(values=[str(number) for number in range(count)])


def use(strategy: str, *numbers: Any, who: str = "boss", **given: Any) -> Step:
    """Return the step that sets the segments of a strategy."""
    ours = given.pop("ours", None)
    body = {"projectId": "default", "environmentId": "development", "strategyId": strategy, "segmentIds": [*numbers]}
    return post(OF, body | given, who, ours=ours)


def no_project(name: str) -> IntendedDifference:
    """Return how our server refuses a project that does not exist."""
    return IntendedDifference(400, f"Project '{name}' does not exist", 500, "a reference to nothing is no failure of the server")


MAKING = [
    get(PATH),
    post(PATH, segment("first", description="d"), keep="first"),
    post(PATH, segment("second", project="default"), keep="second"),
    post(PATH, segment("first")),
    post(PATH, segment("")),
    post(PATH, {"name": "x"}),
    post(PATH, {"constraints": []}),
    post(PATH, {"name": "nul", "constraints": [], "description": None, "project": None, "extra": 1}, keep="third"),
    post(PATH, {"name": "empty", "constraints": [], "description": "", "project": ""}, keep="fourth"),
    post(PATH, {"name": "  spaced  ", "constraints": []}),
    post(PATH, {"name": 7, "constraints": [], "description": 7}),
    post(PATH, {"name": "more", "constraints": [], "createdBy": "me", "createdAt": "2020-01-01", "usedInFeatures": 3}),
    post(PATH, segment("far", project="other"), ADMIN, keep="far_one"),
    post(PATH, segment("", constraint(values=[""]))),
    post(PATH, segment("by token"), ADMIN, keep="by_token"),
    get(f"{PATH}/{{by_token}}", ADMIN),
    get(PATH),
    *[get(f"{PATH}/{{{name}}}") for name in ("first", "second", "third", "fourth")],
    *[get(f"{PATH}/{text}") for text in ("99999", "abc", "1.0", "1.5", "-1")],
    # the last one: on the real server its number is then gone
    post(PATH, segment("lost", project="nosuch"), ADMIN, ours=no_project("nosuch")),
]

CONSTRAINTS = [
    post(PATH, segment(f"c{number}", *several))
    for number, several in enumerate(
        (
            [constraint(operator="NOPE")],
            [constraint(values=[""])],
            [constraint(values=["x" * 101])],
            [constraint(values=["😀" * 51])],
            [constraint(values=[])],
            [{"contextName": "userId", "operator": "IN"}],
            [constraint(contextName="")],
            [constraint(x=1)],
            [constraint(values=["", ""]), constraint(values=[""])],
            [constraint(contextName="nosuch")],
            [constraint(inverted=False, caseInsensitive=False, value="x")],
            [one("NUM_EQ", 5, caseInsensitive="true")],
            [one("REGEX", "a", inverted=True)],
            [constraint(contextName="plan", values=["gold"])],
            [constraint(contextName="plan", values=["gold", "wood"])],
            [one("NUM_EQ", "5", contextName="plan")],
            [one("NUM_EQ", contextName="plan")],
            [values(1001)],
            [values(1000)],
            [values(600), values(401)],
        )
    )
]

CHANGING = [
    post(PATH, segment("first", description="d"), keep="first"),
    post(PATH, segment("second", project="default"), keep="second"),
    put(f"{PATH}/{{first}}", segment("first2")),
    get(f"{PATH}/{{first}}"),
    put(f"{PATH}/{{first}}", segment("first2", description="new", project="default")),
    get(f"{PATH}/{{first}}"),
    put(f"{PATH}/{{first}}", segment("first2", one("NUM_EQ", "2"), description=None)),
    get(f"{PATH}/{{first}}"),
    put(f"{PATH}/{{first}}", segment("second")),
    put(f"{PATH}/{{first}}", segment("")),
    put(f"{PATH}/{{first}}", {"name": "n"}),
    put(f"{PATH}/{{first}}", segment("n", one("NUM_EQ", "x"))),
    put(f"{PATH}/{{first}}", segment("n", values(1001))),
    put(f"{PATH}/{{first}}", segment("n", project="nosuch"), ADMIN, ours=no_project("nosuch")),
    # by an admin token: over a user's the real server ends
    put(f"{PATH}/99999", segment("n"), ADMIN),
    put(f"{PATH}/abc", segment("n"), ADMIN),
    put(f"{PATH}/99999", segment("n", one("SEMVER_EQ", "x")), ADMIN),
    post(f"{PATH}/validate", {"name": "free"}),
    post(f"{PATH}/validate", {"name": "second"}),
    post(f"{PATH}/validate", {"name": ""}),
    post(f"{PATH}/validate", {}),
    post(f"{PATH}/validate", {"name": "a", "b": 1}),
]

WITH_STRATEGIES = [
    post(PATH, segment("first"), keep="first"),
    post(PATH, segment("second", project="default"), keep="second"),
    post(PATH, segment("third"), keep="third"),
    use("{used}", "{first}", "{second}"),
    get(f"{OF}/{{used}}"),
    get(f"{OF}/nosuch"),
    *[get(f"{PATH}/{name}/strategies") for name in ("{first}", "99999", "abc")],
    get(PATH),
    delete(f"{PATH}/{{first}}"),
    use("{archived}", "{third}"),
    get(f"{PATH}/{{third}}/strategies"),
    get(PATH),
    use("{custom}", "{first}", extra=1),
    get(PATH),
    use("{custom}"),
    use("{used}", "{second}"),
    get(f"{OF}/{{used}}"),
    use(
        "nosuch",
        ours=IntendedDifference(404, "Could not find strategy with id nosuch", 201, "nothing is set of what does not exist"),
    ),
    use("nosuch", "{first}", ours=IntendedDifference(404, "Could not find strategy with id nosuch", 500, "nor with segments")),
    use("{used}", 99999, ours=IntendedDifference(404, 'No segment exists with ID "99999"', 500, "a reference to nothing")),
    use("{used}", 1, 2, 3, 4, 5, 6),
    use("{used}", "x"),
    post(OF, {"projectId": "default", "environmentId": "development", "segmentIds": []}),
    use("{used}", "{second}", who=READER),
    use("{used}", "{second}", who=WRITER),
    use("{used}", "{second}", who=WRITER, environmentId="nosuch"),
    use("{used}", "{second}", who=WRITER, projectId="nosuch"),
    use("{used}", "{second}", who=ADMIN),
    put(f"{PATH}/{{second}}", segment("second", project="default")),
    put(f"{PATH}/{{second}}", segment("second", project="other"), ADMIN),
    use("{far}", "{third}", who=ADMIN, projectId="other"),
    put(f"{PATH}/{{third}}", segment("third", project="default"), ADMIN),
    put(f"{PATH}/{{third}}", segment("third", project="other"), ADMIN),
    put(f"{PATH}/{{third}}", segment("third"), ADMIN),
    use("{used}", "{third}"),
    put(f"{PATH}/{{third}}", segment("third", project="default"), ADMIN),
    get(PATH),
    delete(f"{PATH}/{{third}}"),
    delete(f"{PATH}/{{first}}"),
    *[delete(f"{PATH}/{name}", ADMIN) for name in ("{first}", "abc", "99999")],
    use("{far}", who=ADMIN, projectId="other"),
    use("{used}"),
    delete(f"{PATH}/{{third}}"),
    get(f"{OF}/{{archived}}"),
    get(PATH),
]

TO_ALL = IntendedDifference(403, "UPDATE_PROJECT_SEGMENT", 204, "an owner would give to all what belongs to the project")
WHO_MAY = [
    post(PATH, segment("every"), keep="every"),
    post(PATH, segment("r"), READER),
    put(f"{PATH}/{{every}}", segment("every"), READER),
    delete(f"{PATH}/{{every}}", READER),
    get(PATH, READER),
    post(f"{PATH}/validate", {"name": "free"}, READER),
    post(PATH, segment("owned", project="default"), OWNER, keep="owned"),
    post(PATH, segment("r"), OWNER),
    put(f"{PATH}/{{owned}}", segment("owned 2", project="default"), OWNER),
    put(f"{PATH}/{{every}}", segment("every"), OWNER),
    delete(f"{PATH}/{{every}}", OWNER),
    post(PATH, segment("r", project="default"), MEMBER),
    put(f"{PATH}/{{owned}}", segment("owned 2"), OWNER, ours=TO_ALL),
    put(f"{PATH}/{{owned}}", segment("owned 2"), OWNER),
    post(PATH, segment("w"), WRITER, keep="w"),
    put(f"{PATH}/{{w}}", segment("w2"), WRITER),
    post(PATH, segment("mine", project="default"), OWNER, keep="mine"),
    delete(f"{PATH}/{{w}}", WRITER),
    delete(f"{PATH}/{{mine}}", OWNER),
]

TABLES = {
    "segments: making": MAKING,
    "segments: constraints": CONSTRAINTS,
    "segments: changing": CHANGING,
    "segments: strategies": WITH_STRATEGIES,
    "segments: who may": WHO_MAY,
}
