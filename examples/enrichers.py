"""Two context enrichers: EXP_CUSTOM_ENRICHERS_FILE=examples/enrichers.py

The file exports a list named `enrichers`: plain or async functions that take the context and return the one to
evaluate, run in their order before every evaluation. See docs/how-to/context-enrichers.md.
"""

from __future__ import annotations

import asyncio

from flagsvc import Context, enricher

TIERS = {"7": "gold", "42": "platinum"}


@enricher(pure=True, reads={"userId"})
def mail_domain(context: Context) -> Context:
    """Add the property `mailDomain` where the user id is a mail address."""
    _, at, domain = (context.user_id or "").rpartition("@")
    return context.replace(properties={**context.properties, "mailDomain": domain.lower()}) if at else context


async def customer_tier(context: Context) -> Context:
    """Add the property `tier`, as a customer service would know it; never trust the caller's own word for it."""
    properties = {name: value for name, value in context.properties.items() if name != "tier"}
    tier = await look_up(context.user_id)
    return context.replace(properties={**properties, "tier": tier} if tier else properties)


async def look_up(user_id: str | None) -> str | None:
    """Stand in for a call to another service."""
    await asyncio.sleep(0)
    return TIERS.get(user_id or "")


enrichers = [mail_domain, customer_tier]
