"""The kind of a refused token, which follows from its form. Nothing of the token itself is repeated. No I/O."""

from __future__ import annotations

import re

NEEDED = "a backend token is needed (also called client token), `project:environment.secret`"

FORMS: tuple[tuple[str, str], ...] = (
    (r"\".*\"|'.*'", f"the token stands in quotes, which are sent with it: leave them out; {NEEDED}"),
    (r"user:.*", f"the token has the form of a personal access token, `user:secret`; {NEEDED}"),
    (r"\*:\*\..*", f"the token has the form of an admin token, `*:*.secret`; {NEEDED}"),
    (
        r"[^:]+:[^.:]+\..+",
        "the token has the form of a backend or frontend token: frontend tokens are not accepted here; a backend token"
        " must exist on that server",
    ),
    (r".*", f"the token does not look like an API token; it may be a client key; {NEEDED}"),
)
"""Form → description of a token with that form. The first one that fits counts."""


def refused_token(token: str) -> str:
    """Return a description of the kind of a token, and the kind that the upstream's client API accepts."""
    return next(text for form, text in FORMS if re.fullmatch(form, token.strip(), re.DOTALL))
