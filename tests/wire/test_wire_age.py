"""The age of the configuration, as callers see it (decision 0013)."""

from __future__ import annotations

from support.wirekit import TOKEN, Opener

AGE = "x-config-age"


def test_the_age_of_the_configuration(opened: Opener) -> None:
    """Every answer has it in whole seconds: a list, a 304, a refusal, a document."""
    wire = opened(age_header=AGE)
    assert wire.get("/proxy").header(AGE) is None
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"
    wire.pass_s(65.7)
    first = wire.get("/proxy")
    assert first.header(AGE) == "65"
    assert wire.get("/proxy", {"if-none-match": first.header("etag") or ""}).fields.count((AGE, "65")) == 1
    assert wire.get("/proxy", key="wrong").header(AGE) == "65"
    assert wire.post("/proxy", {"toggles": ["on"]}).header(AGE) == "65"
    assert wire.get("/proxy/client/features", key=TOKEN).header(AGE) == "65"
    wire.pass_s(1)
    assert wire.ask("HEAD", "/proxy").header(AGE) == "66"
    wire.holder.confirm(wire.clock)
    assert wire.get("/proxy").header(AGE) == "0"


def test_an_answer_from_the_cache_has_the_age_of_now(opened: Opener) -> None:
    """A cached answer is sent with its present age."""
    wire = opened(age_header=AGE)
    wire.holder.confirm(wire.clock)
    for _ in range(4):
        assert wire.get("/proxy").header(AGE) is not None
        wire.pass_s(1)
    assert wire.service.sources.cache.hits > 0
    assert wire.get("/proxy").header(AGE) == "4"
