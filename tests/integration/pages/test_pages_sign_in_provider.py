"""Signing in at an OpenID provider: the way there and back, and every answer that is refused.

A provider that is slow, fails, or changes its keys: who waits, what is kept, and what the log says.
"""

from __future__ import annotations

import hmac
import json
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from joserfc.jwk import ECKey

from flagsvc.http.client.answers import Answer
from flagsvc.pages.sign_in_tries import NETWORK_TRIES
from flagsvc.server.sign_in import exchange
from flagsvc.server.sign_in import provider as provider_module
from flagsvc.server.sign_in.attempt import MAX_AGE_S, begin, encode
from flagsvc.server.sign_in.exchange import ProviderError
from flagsvc.server.sign_in.provider import KEPT_S, KEYS_PAUSE_S, PAUSE_S, Provider, read_metadata
from flagsvc.server.sign_in.ways import SignInWays
from flagsvc.server.store.resources import identities, users
from flagsvc.testing import FakeClock
from support import processes
from support.flagservers import app_client
from support.page_forms import Visitor, pass_time
from support.provider import SECRET, URL, Scene, keep, running_provider, settings_of


def test_a_person_signs_in(scene: Scene) -> None:
    """From the form to the provider and back to the page that was asked for, as a new user with the roles of the groups."""
    visitor = Visitor(scene.client, None)
    assert "Sign in with 127.0.0.1" in visitor.see("/sign-in?next=/try").text
    address = scene.leave(visitor, "/try?name=a")
    query = parse_qs(urlsplit(address).query)
    assert address.startswith(f"{scene.provider.issuer}/authorize?") and query["scope"] == ["openid profile email"]
    assert query["redirect_uri"] == [f"{URL}/ui/sign-in/callback"]
    answer = scene.come_back(visitor, scene.provider.sign_in(address))
    assert (answer.status, answer.headers["location"]) == (303, "/ui/try?name=a")
    page = visitor.see("/sessions").text
    assert "ada@flags.example (editor)" in page and "the provider" in page and visitor.was_seen("ada@flags.example")
    assert scene.role_of("ada@flags.example") == ("editor", [])


def test_the_cookie_of_a_try(scene: Scene) -> None:
    """It is short, for this site, out of reach of scripts, and tells neither state, nonce nor verifier. Coming back ends it."""
    answer = Visitor(scene.client, None).see("/sign-in/provider")
    cookie, query = answer.headers["set-cookie"], parse_qs(urlsplit(answer.headers["location"]).query)
    assert {"HttpOnly", "SameSite=Lax", f"Max-Age={MAX_AGE_S}"} <= set(cookie.split("; "))
    assert not any(query[name][0] in cookie for name in ("state", "nonce", "code_challenge"))
    assert "flagsvc-attempt=; " in Visitor(scene.client, None).see("/sign-in/callback").headers["set-cookie"]


def refused(scene: Scene, answer: processes.Answer, words: str, status: int = 403) -> None:
    """Require that an answer signs nobody in, says why, and shows nothing of the provider."""
    assert answer.status == status and words in answer.text
    assert "flagsvc=" not in answer.headers.get("set-cookie", "").replace("flagsvc-attempt=", "")
    said = answer.text + str(scene.client.log.lines)
    assert SECRET not in said and "code-" not in said
    assert scene.client.get("/api/admin/user-admin").json()["users"][-1].get("email") != "ada@flags.example"


OURS = "belongs to no sign-in of this browser"


def test_an_answer_works_once(scene: Scene) -> None:
    """Sent again, in the same browser with the cookie of then, it does not get to the provider."""
    visitor = Visitor(scene.client, None)
    query = scene.provider.sign_in(scene.leave(visitor))
    before = visitor.cookie
    assert scene.come_back(visitor, query).status == 303
    asked = dict(scene.provider.asked)
    visitor.cookie = before
    again = scene.come_back(visitor, query)
    assert again.status == 403 and OURS in again.text and scene.provider.asked == asked


def test_an_answer_is_for_the_browser_that_began(scene: Scene) -> None:
    """It is refused without the cookie of the try, with another cookie or state, and after ten minutes."""
    visitor, other = Visitor(scene.client, None), Visitor(scene.client, None)
    query = scene.provider.sign_in(scene.leave(visitor))
    refused(scene, scene.come_back(Visitor(scene.client, None), query), OURS)
    scene.leave(other)
    refused(scene, scene.come_back(other, query), OURS)
    refused(scene, scene.come_back(visitor, query.replace("state=", "state=x")), OURS)
    refused(scene, scene.come_back(visitor, "code=code-0"), OURS)
    pass_time(scene.clock, MAX_AGE_S + 1)
    refused(scene, scene.come_back(visitor, query), OURS)
    assert "/token" not in scene.provider.asked


def test_a_provider_that_signs_nobody_in(scene: Scene) -> None:
    """Who says no at the provider comes back to the form. The log has the code of the error, and nothing that is no code."""
    visitor = Visitor(scene.client, None)
    state = parse_qs(urlsplit(scene.leave(visitor)).query)["state"][0]
    refused(scene, scene.come_back(visitor, f"error=access_denied&state={state}"), "did not sign you in")
    assert "access_denied" in str(scene.client.log.lines)
    refused(scene, scene.come_back(visitor, f"error=Forged+line&state={state}"), "did not sign you in")
    assert "unknown" in str(scene.client.log.lines) and "Forged" not in str(scene.client.log.lines)


def test_tokens_that_nobody_has_signed(scene: Scene) -> None:
    """No signature, one by a shared secret (also the public key as one), and one by another key are refused."""
    provider = scene.provider
    unsigned = encode(b'{"alg":"none"}')
    own = provider.key
    assert isinstance(own, ECKey)
    public = own.as_pem(private=False)

    def shared(claims: dict[str, Any], key: bytes, **more: Any) -> str:
        text = f"{encode(json.dumps({'alg': 'HS256', **more}).encode())}.{encode(json.dumps(claims).encode())}"
        return f"{text}.{encode(hmac.digest(key, text.encode(), 'sha256'))}"

    for forge in (
        lambda claims: ".".join([unsigned, provider.sign(claims).split(".")[1], ""]),
        lambda claims: shared(claims, public, kid=own.kid),
        lambda claims: shared(claims, SECRET.encode()),
        lambda claims: provider.sign(claims)[:-8] + "AAAAAAAA",
        lambda claims: "no token",
        lambda claims: 5,
    ):
        provider.forge = forge  # type: ignore[assignment]
        answer = scene.sign_in()
        refused(scene, answer, "is not accepted here" if answer.status == 403 else "cannot be asked", answer.status)


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_a_provider_may_change_its_key(scene: Scene, algorithm: str) -> None:
    """A new key, of any kind, is asked for when it is used, but not for each unknown one."""
    assert scene.sign_in().status == 303
    pass_time(scene.clock, KEYS_PAUSE_S)
    scene.provider.rotate("second", algorithm)
    assert scene.sign_in().status == 303 and scene.provider.asked["/keys"] == 2
    scene.provider.rotate("third")
    assert scene.sign_in().status == 403 and scene.provider.asked["/keys"] == 2
    pass_time(scene.clock, KEYS_PAUSE_S)
    assert scene.sign_in().status == 303 and scene.provider.asked["/keys"] == 3


def test_the_old_key_of_a_provider_ends(scene: Scene) -> None:
    """After a rotation a token that the old key has signed is refused."""
    assert scene.sign_in().status == 303
    old = scene.provider.key
    pass_time(scene.clock, KEYS_PAUSE_S)
    scene.provider.rotate("second")
    assert scene.sign_in().status == 303
    scene.provider.key = old
    assert scene.sign_in().status == 403


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token", "/keys"])
def test_a_provider_that_fails(scene: Scene, path: str) -> None:
    """The form comes back with a sentence, nothing of the answer leaks, and signing in works again when the provider does."""
    scene.provider.broken = path
    visitor = Visitor(scene.client, None)
    first = visitor.see("/sign-in/provider")
    answer = first
    if first.status == 303:
        keep(visitor, first)
        answer = scene.come_back(visitor, scene.provider.sign_in(first.headers["location"]))
    refused(scene, answer, "cannot be asked", 502)
    assert "status 500" in str(scene.client.log.lines)
    scene.provider.broken = ""
    pass_time(scene.clock, KEYS_PAUSE_S)
    assert scene.sign_in().status == 303


def test_a_provider_that_is_away(database_url: str) -> None:
    """Nobody listens: the form comes back, and other ways to sign in work."""
    with running_provider() as provider:
        gone = settings_of(provider)
    ways = SignInWays(provider=Provider(gone, FakeClock()))
    with app_client(database_url, ways=ways) as client:
        answer = Visitor(client, None).see("/sign-in/provider?next=/try")
        assert answer.status == 502 and "cannot be asked" in answer.text and 'value="/try"' in answer.text
        assert Visitor(client).see("/flags").status == 200


def test_what_is_known_stays_while_the_provider_is_away(scene: Scene) -> None:
    """The discovery document is asked for once an hour, and the old one goes on where that fails."""
    assert scene.sign_in().status == 303 and scene.sign_in().status == 303
    assert scene.provider.asked["/.well-known/openid-configuration"] == 1
    pass_time(scene.clock, KEPT_S + 1)
    scene.provider.broken = "/.well-known/openid-configuration"
    assert scene.sign_in().status == 303


def test_discovery_that_is_refused(scene: Scene) -> None:
    """A document of another issuer is of no use."""
    scene.provider.more = {"issuer": "https://evil.example"}
    assert Visitor(scene.client, None).see("/sign-in/provider").status == 502


def test_a_provider_that_names_itself_in_answers(scene: Scene) -> None:
    """Its metadata promise the name, so an answer without the name is refused. An answer with another name is always refused."""
    scene.provider.more = {"authorization_response_iss_parameter_supported": True}
    for more in ("", "&iss=https://evil.example"):
        visitor = Visitor(scene.client, None)
        query = scene.provider.sign_in(scene.leave(visitor)).partition("&iss=")[0]
        refused(scene, scene.come_back(visitor, query + more), "did not take the answer", 502)
    assert scene.sign_in().status == 303


def test_a_client_that_sends_its_secret_in_the_form(scene: Scene) -> None:
    """Where the provider takes no other way."""
    scene.provider.more = {"token_endpoint_auth_methods_supported": ["client_secret_post"]}
    assert scene.sign_in().status == 303


def test_a_verified_address_links_a_user(scene: Scene) -> None:
    """From then on the account is that user, whatever the address; another account with the address is refused."""
    assert scene.sign_in(sub="b-1", email="Ben@Flags.Example").status == 303
    assert scene.role_of("ben") == ("editor", [])
    assert scene.sign_in(sub="b-1", email="other@flags.example", groups=["shop"]).status == 303
    assert scene.role_of("ben") == ("viewer", ["shop"])
    again = scene.sign_in(sub="b-2", email="ben@flags.example")
    assert again.status == 403 and "linked to another account" in again.text


def test_an_address_that_is_not_verified_is_none(scene: Scene) -> None:
    """It links nobody, and the new user does not get it."""
    assert scene.sign_in(sub="b-1", email="ben@flags.example", email_verified="true").status == 303
    assert scene.role_of("ben") == ("viewer", []) and scene.role_of("b-1") == ("editor", [])


def test_an_administrator_is_not_linked_by_an_address(scene: Scene) -> None:
    """The page names the command that links, which then does."""
    answer = scene.sign_in(sub="c-1", email="chief@flags.example", groups=["flag-admins"])
    command = f"flagsvc server user link chief --issuer {scene.provider.issuer} --subject c-1"
    assert answer.status == 403 and command in answer.text
    with scene.client.server.store.writing(None) as tx:
        identities.link(tx, users.find_by_name(tx, "chief"), scene.provider.issuer, "c-1")
    assert scene.sign_in().status == 303


def test_the_command_that_links_is_safe_to_paste(scene: Scene) -> None:
    """What the provider names stands in quotes, so that the shell of an administrator runs nothing of it."""
    answer = scene.sign_in(sub="c-1; reboot", email="chief@flags.example", groups=["flag-admins"])
    assert answer.status == 403 and "--subject 'c-1; reboot'" in unescape(answer.text)


def test_an_address_of_other_letters_links_nobody(scene: Scene) -> None:
    """The Kelvin sign is a k in lower case, and is no k in an address."""
    scene.sign_in(sub="k-1", email="kim@flags.example")
    with scene.client.server.store.reading() as tx:
        found = [
            identities.find_namesake(tx, identities.Person("other", "k-2", email)) is not None
            for email in ("Kim@flags.example", "\u212aim@flags.example")
        ]
    assert found == [True, False]


def test_a_person_without_a_group_of_ours_is_refused(scene: Scene) -> None:
    """The sentence says why, and nobody is made a user."""
    for groups in (None, [], ["others"]):
        refused(scene, scene.sign_in(groups=groups), "None of your groups has a role here")


def test_groups_in_another_claim(scene: Scene) -> None:
    """Dots lead into objects, a single group may be a text, and a claim with dots in its name wins."""
    found: list[tuple[str, dict[str, Any]]] = [
        ("realm_access.roles", {"realm_access": {"roles": ["devs"]}}),
        ("https://flags.example/groups", {"https://flags.example/groups": "devs"}),
    ]
    for claim, claims in found:
        made = Provider(settings_of(scene.provider, groups_claim=claim), scene.clock)
        attempt = begin("/", scene.clock.now())
        query = parse_qs(scene.provider.sign_in(made.address_of(attempt), groups=None, **claims))
        assert made.redeem(query["code"][0], attempt, None).groups == ("devs",)


def test_answers_are_tried_slowly(scene: Scene) -> None:
    """Wrong answers count, so that no one makes this server ask the provider without end. The page says how long to wait."""
    for _ in range(NETWORK_TRIES):
        assert scene.sign_in(nonce="wrong").status == 403
    asked = dict(scene.provider.asked)
    visitor = Visitor(scene.client, None)
    query = scene.provider.sign_in(scene.leave(visitor))
    answer = scene.come_back(visitor, query)
    assert (answer.status, answer.headers["retry-after"]) == (429, "6") and "set-cookie" not in answer.headers
    assert "Try again in" in answer.text and scene.provider.asked["/token"] == asked["/token"]
    pass_time(scene.clock, 6)
    del scene.provider.claims["nonce"]
    assert scene.come_back(visitor, query).status == 303, "the same answer is right later"


def test_answers_that_do_not_count(scene: Scene) -> None:
    """One for another browser, one in which the provider says no, and a person without a role cost no tries."""
    for _ in range(NETWORK_TRIES + 1):
        visitor = Visitor(scene.client, None)
        query = scene.provider.sign_in(scene.leave(visitor))
        refused(scene, scene.come_back(Visitor(scene.client, None), query), OURS)
        state = parse_qs(query)["state"][0]
        refused(scene, scene.come_back(visitor, f"error=access_denied&state={state}"), "did not sign you in")
        refused(scene, scene.sign_in(groups=[]), "None of your groups")
    assert scene.sign_in(groups=["devs"]).status == 303


def test_wrong_answers_of_the_provider_leave_tokens_alone(scene: Scene) -> None:
    """Whatever comes back from the provider, tokens and links have tries of their own."""
    while scene.sign_in(nonce="wrong").status == 403:
        pass
    assert Visitor(scene.client, None).send("/sign-in", token="wrong").status == 403


def test_without_a_provider_there_is_no_way_to_it(database_url: str) -> None:
    """The form does not name one, and the paths are unknown."""
    with app_client(database_url) as client:
        assert "sign-in/provider" not in Visitor(client, None).see("/sign-in").text
        assert [Visitor(client, None).see(path).status for path in ("/sign-in/provider", "/sign-in/callback")] == [404] * 2


@pytest.mark.parametrize(
    ("body", "said"), [(b'{"error":"invalid_client"}', " (invalid_client)"), (b'{"error":"A b"}', ""), (b"[]", "")]
)
def test_the_log_has_the_code_of_an_error(monkeypatch: pytest.MonkeyPatch, body: bytes, said: str) -> None:
    """That of the token endpoint says what is wrong with the client; only a simple one is repeated."""

    async def send(*_: object) -> Answer:
        return Answer(401, {}, body)

    monkeypatch.setattr(exchange, "_send", send)
    with pytest.raises(ProviderError) as refusal:
        exchange.fetch("https://id.example/token", {})
    assert str(refusal.value) == f"the provider answered with the status 401{said}"


@pytest.fixture
def no_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait shortly for a place."""
    monkeypatch.setattr(provider_module, "WAIT_S", 0.01)


@pytest.mark.usefixtures("no_wait")
def test_too_many_at_the_same_time(scene: Scene) -> None:
    """Who comes back then may reload the page: the try is kept and not counted. The way to the provider is open."""
    visitor, provider = Visitor(scene.client, None), scene.client.server.ways.provider
    assert provider is not None and scene.sign_in().status == 303
    query = scene.provider.sign_in(scene.leave(visitor))
    with provider.place(), provider.place():
        for _ in range(NETWORK_TRIES + 1):
            answer = visitor.see(f"/sign-in/callback?{query}")
            assert (answer.status, answer.headers["retry-after"]) == (503, "3") and "Reload this page" in answer.text
            assert "set-cookie" not in answer.headers
        scene.leave(Visitor(scene.client, None))
    assert scene.come_back(visitor, query).status == 303


def test_who_waits_gets_the_next_place(scene: Scene) -> None:
    """A place that is free within the time is taken."""
    provider = scene.client.server.ways.provider
    assert provider is not None
    visitor = Visitor(scene.client, None)
    query = scene.provider.sign_in(scene.leave(visitor))
    with provider.place(), ThreadPoolExecutor(1) as pool:
        with provider.place():
            coming = pool.submit(scene.come_back, visitor, query)
        assert coming.result().status == 303


def test_discovery_has_a_pause_after_a_failure(scene: Scene) -> None:
    """A provider that fails is not asked by each visitor."""
    scene.provider.broken = "/.well-known/openid-configuration"
    assert {Visitor(scene.client, None).see("/sign-in/provider").status for _ in range(3)} == {502}
    assert scene.provider.asked[scene.provider.broken] == 1
    scene.provider.broken = ""
    pass_time(scene.clock, PAUSE_S)
    assert scene.sign_in().status == 303


def test_a_withdrawn_key_ends_after_an_hour(scene: Scene) -> None:
    """Old keys are asked for again, though the token names one of them."""
    assert scene.sign_in().status == 303
    old = scene.provider.key
    scene.provider.rotate("first")
    assert scene.sign_in().status == 403
    pass_time(scene.clock, KEPT_S)
    assert scene.sign_in().status == 303
    scene.provider.key = old
    assert scene.sign_in().status == 403


@pytest.mark.parametrize(
    "more",
    [
        {"token_endpoint": "http://127.0.0.1/token"},
        {"token_endpoint": "http://evil.example/token"},
        {"token_endpoint": "https://["},
        {"jwks_uri": "file:///etc/passwd"},
        {"authorization_endpoint": None},
        {"authorization_endpoint": "https://evil.example/\r\nx"},
    ],
)
def test_an_issuer_with_tls_names_places_with_tls(more: dict[str, Any]) -> None:
    """Also loopback is none for its secrets; a malformed address is an error of the provider."""
    names = ("issuer", "authorization_endpoint", "token_endpoint", "jwks_uri")
    document = dict.fromkeys(names, "https://id.example")
    assert read_metadata(document, "https://id.example").token == "https://id.example"
    with pytest.raises(ProviderError):
        read_metadata(document | more, "https://id.example")
