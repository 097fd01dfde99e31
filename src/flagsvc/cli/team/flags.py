"""`flagsvc flags`: lists, shows and switches the flags of a flag server, over its admin API."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable

from flagsvc.cli.batch import session, tables
from flagsvc.cli.batch.client import quote_path_part
from flagsvc.cli.batch.confirmation import confirm
from flagsvc.cli.batch.target import NOTES, add_target_arguments
from flagsvc.cli.commands import Subcommand
from flagsvc.cli.team.flag_words import (
    PRODUCTION,
    find_flag,
    find_state,
    lines_of,
    path_of,
    read_flag,
    search,
    table_of,
    who_gets_it,
)
from flagsvc.cli.team.printing import print_columns, print_json
from flagsvc.settings.kinds import printable

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
    """Add the filters, the choice of output, and the server."""
    session.set_epilog(parser, LIST_EPILOG)
    parser.add_argument("--project", metavar="ID", help="only flags of this project")
    text = f"only flags with this tag, TYPE:VALUE, or VALUE of the type {DEFAULT_TAG_TYPE}"
    parser.add_argument("--tag", metavar="TAG", type=parse_tag, help=text)
    parser.add_argument("--state", choices=STATES, help="only such flags [default: active and stale]")
    text = "only flags with one of these words, with commas between, in name, description or a tag"
    parser.add_argument("--search", metavar="TEXT", help=text)
    parser.add_argument("--json", action="store_true", help="print the flags as JSON")
    add_target_arguments(parser)


def run_list(args: Namespace) -> int:
    """Print the flags and return 0, or 2 where a request failed."""
    return session.run_command("flags list", lambda: list_(args), as_json=args.json)


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
    """Return the filters of the search."""
    given = {"project": args.project and f"IS:{args.project}", "tag": args.tag and f"INCLUDE:{args.tag}"}
    given["query"] = args.search
    return {name: text for name, text in given.items() if text} | STATES.get(args.state, {})


def add_show_arguments(parser: ArgumentParser) -> None:
    """Add the flag, the choice of output, and the server."""
    session.set_epilog(parser, SHOW_EPILOG)
    parser.add_argument("name", metavar="NAME", help=NAME)
    parser.add_argument("--json", action="store_true", help="print the flag as JSON, with the sentences as `words`")
    add_target_arguments(parser)


def run_show(args: Namespace) -> int:
    """Print a flag and return 0, 1 where there is none, or 2 where a request failed."""
    return session.run_command("flags show", lambda: show(args), as_json=args.json)


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
    return lambda args: session.run_command(f"flags {word}", lambda: switch(args, word))


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
        client.send("POST", f"{path_of(flag)}/environments/{quote_path_part(args.environment)}/{word}")
    print(f"{name} is {word} in {environment}")
    return 0


LIST = Subcommand(
    "List the flags of a flag server: name, project, type, and the state in each environment.",
    add_list_arguments,
    run_list,
)
SHOW = Subcommand(
    "Show a flag of a flag server: every environment, with the strategies as sentences.", add_show_arguments, run_show
)
ON, OFF = (
    Subcommand(
        f"Switch a flag {word} in an environment of a flag server. In one of the type {PRODUCTION} it asks first.",
        add_switch_arguments(word),
        run_switch(word),
    )
    for word in ("on", "off")
)
