"""`flagsvc flags`: lists, shows and switches the flags of a flag server, over its admin API, with their states and
strategies in words.
"""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, TypeAlias

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import AdminClient, feature_path, quote_path_part
from flagsvc.cli.batch.server_errors import AdminApiError
from flagsvc.cli.batch.tables import confirm, day_and_minute, print_columns, print_json
from flagsvc.cli.batch.target import NOTES, add_target_arguments
from flagsvc.cli.commands import Subcommand
from flagsvc.engine.parse import parse_dependency
from flagsvc.reasons.words import EVERYONE, dependency_words, read_segments, whole_words, words_of_variants
from flagsvc.settings.kinds import printable

Json: TypeAlias = dict[str, Any]
NO_STRATEGY = f"{EVERYONE}, because no strategy is active"
PRODUCTION = "production"
"""The type of environments where a switch asks first."""
MEMBERS, STATE_MEMBERS = {"name", "project", "type", "environments"}, {"name", "type", "enabled"}
"""What every flag has, and what every state of one in an environment has."""
LONGEST = 600
"""The most characters of a line."""


class UnknownFlagError(AdminApiError):
    """The server has no such flag, or it is archived."""

    exit_code = 1


def search(client: AdminClient, **filters: str) -> Iterator[Json]:
    """Yield the flags that a search finds. Raises AdminApiError, also for flags of another form."""
    for each in client.search_flags(**filters):
        yield checked(client, each)


def checked(client: AdminClient, flag: object) -> Json:
    """Return a flag that the server gave; raises AdminApiError if it does not have the form of one."""
    if isinstance(flag, dict) and flag.keys() >= MEMBERS and isinstance(flag["environments"], list):
        states = flag["environments"]
        if all(isinstance(each, dict) and each.keys() >= STATE_MEMBERS for each in states):
            return flag
    raise client.not_a_flag_server()


def find_flag(client: AdminClient, name: str) -> Json:
    """Return a flag as a search gives it: with its project, tags and states. Raises AdminApiError."""
    found = next((each for each in search(client, query=name) if each["name"] == name), None)
    if found is not None:
        return found
    shown = printable(name)
    if any(each["name"] == name for each in search(client, query=name, archived="IS:true")):
        raise UnknownFlagError("archived", f"the flag `{shown}` is archived: revive it first")
    hint = "`flagsvc flags list --search TEXT` finds a flag by a part of its name"
    raise UnknownFlagError("not-found", f"the server has no flag `{shown}`; {hint}")


def find_state(flag: Json, environment: str) -> Json:
    """Return the state of a flag in an environment. Raises AdminApiError where the flag is not in it."""
    states = {str(each["name"]): each for each in flag["environments"]}
    if environment in states:
        return dict(states[environment])
    near = get_close_matches(environment, states, 1)
    hint = f"did you mean `{near[0]}`?" if near else f"it is in {', '.join(states) or 'none'}"
    text = f"`{flag['name']}` is in no environment `{printable(environment)}`; {printable(hint, 200)}"
    raise AdminApiError("not-found", text)


def read_flag(client: AdminClient, found: Json) -> Json:
    """Return a flag as the server has it, with its tags, and with `words` in each environment and strategy.

    `found` is the flag as a search gives it. Raises AdminApiError.
    """
    flag = checked(client, client.send("GET", f"{feature_path(found['project'], found['name'])}?variantEnvironments=true"))
    segments = read_segments(client.rows("/api/admin/segments", "segments"))
    for state in flag["environments"]:
        state["strategies"] = [each | {"words": whole_words(each, segments, flag["name"])} for each in state.get("strategies", ())]
        state["words"] = state_words(state)
    return flag | {"tags": found.get("tags") or []}


def state_words(state: Mapping[str, Any]) -> str:
    """Return the state of a flag in an environment in words; that of a search tells whether a strategy is active."""
    if not state["enabled"]:
        return "off"
    return "on by strategies" if has_active_strategies(state) else f"on for {EVERYONE}"


def has_active_strategies(state: Mapping[str, Any]) -> bool:
    """Return whether a strategy decides, as the state of a flag or of a search says."""
    if "strategies" in state:
        return any(not each.get("disabled") for each in state["strategies"])
    return bool(state.get("hasEnabledStrategies", True))


def who_gets_it(state: Mapping[str, Any]) -> str:
    """Return in one line which users get a flag when it is on."""
    words = [each["words"] for each in state["strategies"] if not each.get("disabled")]
    return printable("; or ".join(words) or EVERYONE, LONGEST)


def lines_of(flag: Json) -> Iterator[str]:
    yield printable(flag["name"], LONGEST)
    facts = dict(facts_of(flag))
    width = max(map(len, facts))
    for title, text in facts.items():
        yield f"  {title:{width}}  {printable(text, LONGEST)}"
    for state in flag["environments"]:
        kind = "" if state["type"] == state["name"] else f" ({state['type']})"
        yield ""
        yield printable(f"{state['name']}{kind}: {'on' if state['enabled'] else 'off'}", LONGEST)
        yield from (f"  {printable(text, LONGEST)}" for text in lines_of_state(state))


def lines_of_state(state: Json) -> Iterator[str]:
    """Yield the strategies of a flag in an environment as sentences, and its variants there."""
    yield from (each["words"] for each in state["strategies"])
    if not has_active_strategies(state):
        yield NO_STRATEGY
    if variants := words_of_variants(state.get("variants") or ()):
        yield f"variants: {variants}"


def facts_of(flag: Json) -> Iterator[tuple[str, str]]:
    """Yield what there is to say of a flag in all environments: a title and a text."""
    yield "project", flag["project"]
    yield "type", type_of(flag)
    if flag.get("description"):
        yield "description", flag["description"]
    if flag["tags"]:
        yield "tags", ", ".join(f"{each['type']}:{each['value']}" for each in flag["tags"])
    if flag.get("dependencies"):
        yield "needs", " and ".join(needs_words(flag["dependencies"]))
    yield "created", day_and_minute(flag.get("createdAt")) or "unknown"
    yield "last asked", day_and_minute(flag.get("lastSeenAt")) or "never"


def needs_words(dependencies: Sequence[Json]) -> Iterator[str]:
    for each in dependencies:
        yield dependency_words(parse_dependency(each, "dependency"))


def type_of(flag: Json) -> str:
    return f"{flag['type']}, stale" if flag.get("stale") else str(flag["type"])


def table_of(flags: Sequence[Json]) -> tuple[list[str], list[list[str | None]]]:
    """Return the heads and the rows of a list: name, project, type and each environment in words."""
    environments = {each["name"]: each.get("sortOrder", 0) for flag in flags for each in flag["environments"]}
    names = sorted(environments, key=lambda name: (environments[name], name))
    rows: list[list[str | None]] = []
    for flag in flags:
        words = {each["name"]: state_words(each) for each in flag["environments"]}
        rows.append([flag["name"], flag["project"], type_of(flag), *(words.get(name) for name in names)])
    return ["NAME", "PROJECT", "TYPE", *names], rows


STATES = {
    "active": {"state": "IS:active"},
    "stale": {"state": "IS:stale"},
    "archived": {"archived": "IS:true"},
}
"""State of `--state` → its filters in a search."""
DEFAULT_TAG_TYPE = "simple"
NAME = "name of the flag"
LIST_EPILOG = f"""\
{NOTES}
examples
  flagsvc flags list --url https://flags.example.com --token-file token
  flagsvc flags list --project shop --state stale
  flagsvc flags list --tag team:web --search checkout

exit code: 0; 2 a request to the server failed
"""
SHOW_EPILOG = f"""\
{NOTES}
examples
  flagsvc flags show new-checkout --url https://flags.example.com --token-file token

exit code: 0; 1 there is no such flag; 2 a request to the server failed
"""
SWITCH_EPILOG = f"""\
{NOTES}
examples
  flagsvc flags {{0}} new-checkout --environment development --url https://flags.example.com --token-file token
  flagsvc flags {{0}} new-checkout --environment production --yes

exit code: 0 the flag is {{0}}; 1 there is no such flag, or the switch was not confirmed; 2 a request to the server failed, or
there was no terminal to ask for confirmation
"""


def parse_tag(text: str) -> str:
    """Return a tag as `type:value`."""
    kind, colon, value = text.strip().partition(":")
    kind, value = (kind, value) if colon else (DEFAULT_TAG_TYPE, kind)
    if not kind or not value or "," in text:
        raise ArgumentTypeError("expected one tag, TYPE:VALUE")
    return f"{kind}:{value}"


def add_list_arguments(parser: ArgumentParser) -> None:
    session.set_epilog(parser, LIST_EPILOG)
    parser.add_argument("--project", metavar="ID", help="only flags of this project")
    text = f"only flags with this tag, TYPE:VALUE, or VALUE of the type {DEFAULT_TAG_TYPE}"
    parser.add_argument("--tag", metavar="TAG", type=parse_tag, help=text)
    parser.add_argument("--state", choices=STATES, help="only such flags [default: active and stale]")
    text = "only flags with one of these words, with commas between, in name, description or a tag"
    parser.add_argument("--search", metavar="TEXT", help=text)
    parser.add_argument("--json", action="store_true", help="print the flags as JSON")
    add_target_arguments(parser)


@session.command("flags list")
def list_(args: Namespace) -> int:
    """Print the flags that the filters leave, and return 0; raises AdminApiError and ConfigurationError."""
    with session.connect(args, "flags list") as client, tables.progress("asking the server"):
        if args.project is not None:
            client.check_exists(project=args.project)
        found = list(search(client, **filters_of(args)))
    if args.json:
        print_json(found)
    else:
        print_columns(*table_of(found))
    return 0


def filters_of(args: Namespace) -> dict[str, str]:
    given = {"project": args.project and f"IS:{args.project}", "tag": args.tag and f"INCLUDE:{args.tag}"}
    given["query"] = args.search
    return {name: text for name, text in given.items() if text} | STATES.get(args.state, {})


def add_show_arguments(parser: ArgumentParser) -> None:
    session.set_epilog(parser, SHOW_EPILOG)
    parser.add_argument("name", metavar="NAME", help=NAME)
    parser.add_argument("--json", action="store_true", help="print the flag as JSON, with the sentences as `words`")
    add_target_arguments(parser)


@session.command("flags show")
def show(args: Namespace) -> int:
    """Print a flag and return 0; raises AdminApiError and ConfigurationError."""
    with session.connect(args, "flags show") as client, tables.progress("asking the server"):
        flag = read_flag(client, find_flag(client, args.name))
    if args.json:
        print_json(flag)
    else:
        print("\n".join(lines_of(flag)))
    return 0


def add_switch_arguments(word: str) -> Callable[[ArgumentParser], None]:
    """Return the function that adds the flag, the environment, `--yes` and the server."""

    def add(parser: ArgumentParser) -> None:
        session.set_epilog(parser, SWITCH_EPILOG.format(word))
        parser.add_argument("name", metavar="NAME", help=NAME)
        parser.add_argument("--environment", metavar="NAME", required=True, help=f"environment to switch it {word} in")
        text = f"do not ask for confirmation in an environment of the type {PRODUCTION}"
        parser.add_argument("--yes", action="store_true", help=text)
        add_target_arguments(parser)

    return add


def run_switch(word: str) -> Callable[[Namespace], int]:
    """Return the function that switches a flag `on` or `off` and returns 0, 1 or 2."""
    return session.command(f"flags {word}")(lambda args: switch(args, word))


def switch(args: Namespace, word: str) -> int:
    """Switch a flag `on` or `off` after confirmation, and return the exit code; raises AdminApiError and ConfigurationError."""
    with session.connect(args, f"flags {word}") as client:
        flag = find_flag(client, args.name)
        state = find_state(flag, args.environment)
        name, environment = (f"`{printable(each)}`" for each in (args.name, args.environment))
        if bool(state["enabled"]) == (word == "on"):
            print(f"{name} is {word} in {environment} already")
            return 0
        if state["type"] == PRODUCTION and not args.yes:
            who = who_gets_it(find_state(read_flag(client, flag), args.environment))
            question = f"Switch {name} {word} in {environment}, for: {who}?"
            code = confirm(f"flags {word}", question, "nothing was switched", yes=False, shows="")
            if code is not None:
                return code
        path = feature_path(flag["project"], flag["name"])
        client.send("POST", f"{path}/environments/{quote_path_part(args.environment)}/{word}")
    print(f"{name} is {word} in {environment}")
    return 0


LIST = Subcommand(
    "List the flags of a flag server: name, project, type, and the state in each environment.",
    add_list_arguments,
    list_,
)
SHOW = Subcommand("Show a flag of a flag server: every environment, with the strategies as sentences.", add_show_arguments, show)
ON, OFF = (
    Subcommand(
        f"Switch a flag {word} in an environment of a flag server. In one of the type {PRODUCTION} it asks first.",
        add_switch_arguments(word),
        run_switch(word),
    )
    for word in ("on", "off")
)
