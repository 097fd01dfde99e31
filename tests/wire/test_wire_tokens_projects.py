"""Environments that divide the projects of one upstream, for tokens that are looked up (behaviour: Tokens looked up upstream)."""

from __future__ import annotations

from typing import Any

import pytest

from support.aio import asynchronous
from support.fake_upstream import granted
from support.token_scene import FRONT, FRONT_A, FRONT_AB, TOKENS, UP, TokenScene, decoded, knowing_upstream, token_proxy

FRONT_B = "b:production.hidden-front-b"
UP_AB = "[]:production.hidden-up-ab"
CALLERS = (FRONT_A, FRONT_B, FRONT_AB, FRONT)
OF_A, OF_B, EVERY = ["of-a", "free"], ["of-b", "free"], ["of-a", "of-b", "free"]
ONLY_A, ONLY_B = {"flagsvc_api_token": UP, "project_name": "a"}, {"flagsvc_api_token": UP, "project_name": "b"}


def tables(*given: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return the options of a process with these environments, in this order."""
    return {"client_keys": None, "flagsvc_api_token": None, "environments": dict(given)}


async def flags(scene: TokenScene, token: str) -> list[str] | None:
    """Return the flags that a token gets; None if it is refused."""
    answer = await scene.ask("/api/frontend/all", token)
    assert answer.status_code in (200, 401)
    return [each["name"] for each in decoded(answer)["toggles"]] if answer.status_code == 200 else None


async def check(options: dict[str, Any], expected: list[list[str] | None]) -> str:
    """Assert what each of CALLERS gets, and that /edge/validate knows those that get something. Returns what was logged."""
    with knowing_upstream() as upstream:
        upstream.tokens = {**TOKENS, FRONT_B: granted("frontend", "b"), UP_AB: granted("client", "a", "b")}
        async with token_proxy(upstream, **options) as scene:
            for _ in range(2):
                assert [await flags(scene, token) for token in CALLERS] == expected
            answer = decoded(await scene.ask("/edge/validate", None, "POST", json={"tokens": list(CALLERS)}))
            known = [each["token"] for each in answer["tokens"]]
            assert known == [token for token, got in zip(CALLERS, expected, strict=True) if got is not None]
            return scene.log


@pytest.mark.parametrize("turn", [1, -1])
@asynchronous
async def test_an_environment_for_each_project(turn: int) -> None:
    """Each token gets the flags of its project. One of both projects is refused, and the log says why, without the token."""
    log = await check(tables(*[("x", ONLY_A), ("y", ONLY_B)][::turn]), [OF_A, OF_B, None, None])
    [line] = [line for line in log.splitlines() if "a valid token is refused" in line]
    assert "x, y" in line and "a, b" in line and "one backend token" in line and "hidden" not in log


@pytest.mark.parametrize("turn", [1, -1])
@asynchronous
async def test_an_environment_for_one_project_and_one_for_all(turn: int) -> None:
    """The narrow one takes nothing away from the wide one."""
    await check(tables(*[("x", ONLY_A), ("y", {"flagsvc_api_token": UP})][::turn]), [OF_A, OF_B, EVERY, EVERY])


@pytest.mark.parametrize("several", [True, False])
@asynchronous
async def test_one_environment_for_some_projects(several: bool) -> None:
    """A token of more projects than the proxy has is refused, not answered with a part."""
    options = {"flagsvc_api_token": UP_AB} if several else {"project_name": "a"}
    await check(options, [OF_A, OF_B, EVERY, None] if several else [OF_A, None, None, None])


@asynchronous
async def test_metrics_of_several_environments() -> None:
    """Environments share the look-ups of tokens: their numbers are those of the process. Cached answers are the environment's."""
    with knowing_upstream() as upstream:
        async with token_proxy(upstream, **tables(("x", {"flagsvc_api_token": UP}))) as scene:
            for _ in range(3):
                assert [await flags(scene, token) for token in (FRONT_A, FRONT)] == [OF_A, EVERY]
            page = (await scene.ask("/proxy/internal-backstage/prometheus", None)).text
    assert "\nflagsvc_tokens_known 2.0\n" in page and "\nflagsvc_token_lookups_total 2.0\n" in page
    assert '\nflagsvc_answer_cache_hits_total{environment="x"} 2.0\n' in page
