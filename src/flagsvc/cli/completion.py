"""Print the completion script for a shell: commands, options, values and files.

bash  source <(flagsvc completion bash)      in ~/.bashrc
zsh   source <(flagsvc completion zsh)       in ~/.zshrc, behind compinit
fish  flagsvc completion fish | source       in ~/.config/fish/config.fish
"""

from __future__ import annotations

from argparse import SUPPRESS, Action, ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flagsvc.cli.commands import BY_NAME, PREFIXES, Command, words_after
from flagsvc.cli.parser import ParagraphFormatter, UsageError, open_command
from flagsvc.settings.kinds import printable
from flagsvc.settings.table import OPTIONS, SERVER_OPTIONS

FILES = ("FILE", "FILES", "DOCUMENT")
"""Metavars of values that are files."""


class CommandFlag(NamedTuple):
    """A flag: its name, help text, metavar and possible values (`words`), and whether it takes or requires a value."""

    name: str
    text: str
    metavar: str = ""
    words: tuple[str, ...] = ()
    takes: bool = False
    must: bool = False

    @property
    def files(self) -> bool:
        return self.metavar in FILES


class CommandPage(NamedTuple):
    """A command: its row, its flags, the possible values of its positional arguments, and whether these are files."""

    command: Command
    flags: tuple[CommandFlag, ...]
    words: tuple[str, ...]
    files: bool


def add_arguments(parser: ArgumentParser) -> None:
    parser.formatter_class = ParagraphFormatter
    parser.add_argument("shell", metavar="SHELL", help=f"one of {', '.join(WRITERS)}")


def run(args: Namespace) -> int:
    """Print the script of a shell and return 0. Raises UsageError for a shell that has none."""
    if args.shell not in WRITERS:
        raise UsageError(f"unknown shell `{printable(args.shell)}`; expected one of {', '.join(WRITERS)}")
    print(WRITERS[args.shell]([build_page(name) for name in PREFIXES]))
    return 0


def build_page(name: str) -> CommandPage:
    """Return what can be completed after the name of a command, or the beginning of one, from its arguments."""
    following = tuple(words_after(name))
    if name not in BY_NAME:
        return CommandPage(Command(name, "", f"commands: {', '.join(following)}"), (), following, files=False)
    command = BY_NAME[name]
    _, parser = open_command(command)
    actions = [action for action in parser._actions if action.help != SUPPRESS]
    flags = tuple(build_flag(action) for action in actions if action.option_strings)
    positional = [action for action in actions if not action.option_strings]
    words = tuple(str(word) for action in positional for word in action.choices or ())
    words = {"help": tuple(words_after("")), "completion": tuple(WRITERS)}.get(command.name, (*following, *words))
    return CommandPage(command, flags, words, any(action.metavar in FILES for action in positional))


def build_flag(action: Action) -> CommandFlag:
    kinds = {option.name: option.kind for option in (*SERVER_OPTIONS, *OPTIONS)}
    words = tuple(map(str, action.choices or ()))
    if action.dest in kinds and not words:
        words = kinds[action.dest].words
    text = (action.help or "").replace("%%", "%").partition(" [")[0].partition("; ")[0]
    takes = action.nargs != 0
    return CommandFlag(action.option_strings[-1], text, str(action.metavar or ""), words, takes, takes and action.nargs != "?")


# ---- bash


def bash(pages: list[CommandPage]) -> str:
    cases = "\n".join(line for each in pages for line in _bash_values(each))
    commands = "\n".join(
        f'    {_single(each.command.name)}) words="{" ".join((*each.words, *(flag.name for flag in each.flags)))}"'
        f"{' files=1' if each.files else ''} ;;"
        for each in pages
    )
    known = "|".join(_single(each.command.name) for each in pages)
    return f"""\
# Completion of flagsvc in bash: source <(flagsvc completion bash)
_flagsvc() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} words= files= name=${{COMP_WORDS[1]}} at
  COMPREPLY=()
  if [[ $COMP_CWORD -eq 1 ]]; then
    COMPREPLY=($(compgen -W "{" ".join((*words_after(""), "--help", "--version"))}" -- "$cur"))
    return
  fi
  for ((at = 2; at < COMP_CWORD; at++)); do
    case "$name ${{COMP_WORDS[at]}}" in
      {known}) name="$name ${{COMP_WORDS[at]}}" ;;
      *) break ;;
    esac
  done
  if [[ $cur == = ]]; then cur=
  elif [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  case "$name $prev" in
{cases}
  esac
  case "$name" in
{commands}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
  if [[ $files && $cur != -* ]]; then _flagsvc_files "$cur"; fi
}}
_flagsvc_files() {{
  local IFS=$'\\n'
  compopt -o filenames 2> /dev/null
  COMPREPLY+=($(compgen -f -- "$1"))
}}
complete -F _flagsvc flagsvc"""


def _bash_values(page: CommandPage) -> Iterator[str]:
    """Yield the cases of flags with a value: words, files, or no completion."""
    ways: dict[str, list[str]] = {}
    for each in page.flags:
        if each.words:
            rest = "return" if each.must else "[[ $COMPREPLY ]] && return"
            way = f'COMPREPLY=($(compgen -W "{" ".join(each.words)}" -- "$cur")); {rest}'
        else:
            way = '_flagsvc_files "$cur"; return' if each.files else "return"
        if each.takes:
            ways.setdefault(way, []).append(f'"{page.command.name} {each.name}"')
    for way, names in ways.items():
        yield f"    {'|'.join(names)}) {way} ;;"


# ---- zsh


def zsh(pages: list[CommandPage]) -> str:
    first = [each for each in pages if " " not in each.command.name]
    commands = "\n".join(f"      {_single(f'{each.command.name}:{each.command.summary}')}" for each in first)
    known = "|".join(_single(each.command.name) for each in pages)
    cases = "\n".join(_zsh_case(each) for each in pages)
    return f"""\
#compdef flagsvc
# Completion of flagsvc in zsh: source <(flagsvc completion zsh), behind compinit
_flagsvc() {{
  if (( CURRENT == 2 )); then
    local -a commands=(
{commands}
    )
    _describe command commands
    return
  fi
  local name=$words[2]
  shift words
  (( CURRENT-- ))
  while (( CURRENT > 2 )); do
    case "$name $words[2]" in
      {known}) name="$name $words[2]"; shift words; (( CURRENT-- )) ;;
      *) break ;;
    esac
  done
  case $name in
{cases}
  esac
}}
if [[ $funcstack[1] == _flagsvc ]]; then _flagsvc "$@"; else compdef _flagsvc flagsvc; fi"""


def _zsh_case(page: CommandPage) -> str:
    """Return the arguments of a command in the form of zsh's _arguments."""
    lines = [_single(_zsh_flag(each)) for each in page.flags]
    if page.files:
        lines.append("'*:file:_files'")
    elif page.words:
        lines.append(_single(f"1:name:({' '.join(page.words)})"))
    return f"    {_single(page.command.name)}) _arguments \\\n      " + " \\\n      ".join(lines) + " ;;"


def _zsh_flag(flag: CommandFlag) -> str:
    text = "".join(f"\\{char}" if char in "[]:\\" else char for char in flag.text)
    action = f"({' '.join(flag.words)})" if flag.words else "_files" if flag.files else " "
    value = f"{':' if flag.must else '::'}{flag.metavar or 'value'}:{action}" if flag.takes else ""
    return f"{flag.name}{'=' if flag.takes else ''}[{text}]{value}"


# ---- fish


def fish(pages: list[CommandPage]) -> str:
    known = " ".join(_fish(each.command.name) for each in pages)
    lines = [
        "# Completion of flagsvc in fish: flagsvc completion fish | source",
        "function __flagsvc_command",
        "  set -l name",
        "  for word in (commandline -opc)[2..-1]",
        f'    contains -- (string trim "$name $word") {known}; or break',
        '    set name (string trim "$name $word")',
        "  end",
        "  echo $name",
        "end",
        "complete -c flagsvc -f",
        *(
            f"complete -c flagsvc -n __fish_use_subcommand -a {each.command.name} -d {_fish(each.command.summary)}"
            for each in pages
            if " " not in each.command.name
        ),
    ]
    return "\n".join([*lines, *(line for each in pages for line in _fish_lines(each))])


def _fish_lines(page: CommandPage) -> Iterator[str]:
    head = f"complete -c flagsvc -n 'test (__flagsvc_command) = \"{page.command.name}\"'"
    if page.files:
        yield f"{head} -F"
    if page.words:
        yield f"{head} -a {_fish(' '.join(page.words))}"
    for each in page.flags:
        name = f"-l {each.name[2:]}" if each.name.startswith("--") else f"-s {each.name[1:]}"
        value = " -r -F" if each.files else " -x" if each.must else ""
        words = f" -a {_fish(' '.join(each.words))}" if each.words else ""
        yield f"{head} {name}{value}{words} -d {_fish(each.text)}"


def _single(text: str) -> str:
    """Return a text as one word of a POSIX shell."""
    quoted = text.replace("'", "'\\''")
    return f"'{quoted}'"


def _fish(text: str) -> str:
    """Return a text as one word of fish; within single quotes, fish unescapes only backslashes and quotes."""
    quoted = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"


WRITERS: dict[str, Callable[[list[CommandPage]], str]] = {"bash": bash, "zsh": zsh, "fish": fish}
"""Shell → the function that writes its script."""
