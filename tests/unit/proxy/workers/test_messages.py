"""Messages between parent and workers are decoded as they were, and their repr shows no secret."""

from __future__ import annotations

from flagsvc.proxy.usage import ImpactKey, ImpactSample, UsageCounters, UsageSource
from flagsvc.proxy.usage.unsent import from_wire
from flagsvc.proxy.workers import messages
from flagsvc.proxy.workers.messages import Deframer


def test_secrets_are_not_shown() -> None:
    """The repr of Welcome and of Reload shows no options. The repr of a message with tokens does not contain them."""
    environments = [messages.EnvironmentOptions(3, "a", {"flagsvc_api_token": "secret"})]
    welcome = messages.Welcome(3, environments, environments, [[5]], {"flagsvc_api_token": "secret"})
    assert repr(welcome) == f"Welcome(3, {environments!r}, [[5]])" and "secret" not in repr(welcome)
    assert "secret" not in repr(messages.Reload(4, environments))
    assert repr(environments) == "[EnvironmentOptions(3, 'a')]"
    question = messages.TokenQuestion(7, ["very-secret"], "cb0071", 4.5)
    assert "secret" not in f"{question!r} {messages.Revoked('very-secret')!r} {[question]} {question}"


def test_what_is_sent_of_counts() -> None:
    """Without counts there is no message. The counts of each source are a bucket of their own. Nothing is sent twice."""
    counters = UsageCounters(lambda: {"a": frozenset()}, lambda: 1.0)
    assert messages.make_counts(counters, {}) is None
    assert messages.make_counts(counters, {("name",): 1.0}) == messages.Counts(samples=[(["name"], 1.0)])
    source = UsageSource("shop", "one")
    counters.count("a", True)
    counters.add("a", 2, 1, {}, source)
    counters.register(source, {"appName": "shop"})
    sent = messages.make_counts(counters, {})
    assert sent is not None
    assert [(usage.source, usage.toggles["a"][:2]) for usage in sent.usage] == [(None, (1, 0)), (source, (2, 1))]
    assert sent.registrations == [(("shop", "one"), {"appName": "shop"})]
    assert messages.make_counts(counters, {}) is None


def test_impact_metrics_reach_the_parent() -> None:
    """They are added to the counters of the parent as they were to those of the worker, under the name of the application."""
    key, source = ImpactKey("time", "histogram", (0.5, 5.0)), UsageSource("shop", "one")
    worker, parent, direct = (UsageCounters(dict, lambda: 1.0) for _ in range(3))
    for _ in range(2):
        for each in (worker, direct):
            each.add_impact(ImpactSample(key, "help", (("a", "b"),), [2.5, 3.0, 1.0, 2.0]), source)
            each.add_impact(ImpactSample(ImpactKey("load", "gauge", ()), "help", (), [2.5]))
        sent = messages.make_counts(worker, {})
        assert sent is not None
        [frame] = Deframer().feed(b"".join(messages.encode_message(sent)))
        received = messages.decode_worker_message(frame.head)
        assert isinstance(received, messages.Counts)
        for usage in received.usage:
            parent.merge(from_wire(usage))
    for one, other in zip([parent.peek(), *parent.peek_sources()], [direct.peek(), *direct.peek_sources()], strict=True):
        assert (one.source, one.impact.keys()) == (other.source, other.impact.keys())
        assert [each.samples for each in one.impact.values()] == [each.samples for each in other.impact.values()]
