"""Three tasks of a person, as steps at our pages and at those of the real server: the shortest way that each has, in clicks."""

from __future__ import annotations

from typing import NamedTuple

FLAGS = 20
NAMES = [f"team-{number % 5}.feature-{number:02}" for number in range(FLAGS)]
SWITCHED, ASKED, COPIED = NAMES[5], NAMES[7], NAMES[8]
"""The flag to switch off, a flag that leaves out user 7, and a flag that is in development only."""
WORDS = """
const row = name => [...document.querySelectorAll("tr")].find(each => each.innerText.includes(name));
const said = (tags, words) => [...document.querySelectorAll(tags)].find(
  each => each.offsetParent && each.innerText.trim() === words);
const one = selector => document.querySelector(selector);
"""
"""What the scripts below call."""


class Click(NamedTuple):
    """Press what a script finds."""

    target: str


class Write(NamedTuple):
    """Write where the focus is."""

    text: str


class Task(NamedTuple):
    """What a person does in the list of flags, and the script that says whether the page shows that it is done."""

    title: str
    steps: tuple[Click | Write, ...]
    done: str


OFF, WHY, COPY = "switch it off", "why not user 7", "copy to production"
OUR_TASKS = (
    Task(
        OFF,
        (Click(f"row('{SWITCHED}')?.querySelectorAll('.switch')[1]"), Click("said('button', 'Switch off')")),
        "one('#notice .done')?.innerText.includes('off in production')",
    ),
    Task(
        WHY,
        (
            Click("said('nav a', 'Try')"),
            Write("7"),
            Click("said('button.main', 'Try')"),
            Click(f"row('{ASKED}')?.querySelector('[name=why]')"),
        ),
        "one('.why')?.innerText.includes('userId is one of 1, 2, 3: it is 7')",
    ),
    Task(
        COPY,
        (
            Click(f"said('tbody a', '{COPIED}')"),
            Click("said('a.button', 'Copy to …')"),
            Click("one('button[value=preview]:not(.hidden)')"),
            Click("said('button.main', 'Copy')"),
        ),
        "one('#notice .done')?.innerText.includes('production')",
    ),
)
THEIR_SWITCH = "input[aria-label=production]"
CONFIRM = Click("one('[data-testid=DIALOGUE_CONFIRM_ID]')")
THEIR_TASKS = (
    Task(
        OFF,
        (Click(f"row('{SWITCHED}')?.querySelector('{THEIR_SWITCH}')"), CONFIRM),
        f"row('{SWITCHED}')?.querySelector('{THEIR_SWITCH}').checked === false",
    ),
    Task(
        WHY,
        (
            Click("said('nav a, aside a, a', 'Playground')"),
            Click("one('#environment')"),
            Click("said('[role=option]', 'production')"),
            Click("one('.cm-content')"),
            Write('{"userId":"7"}'),
            Click("said('button', 'Try configuration')"),
            Click(f"[...(row('{ASKED}')?.querySelectorAll('button') ?? [])].at(-2)"),
            Click("one('.MuiPopover-root tbody button')"),
        ),
        "[...document.querySelectorAll('.MuiPopover-root')].some(each => each.innerText.includes('Constraint not met'))",
    ),
    Task(
        COPY,
        (
            Click(f"said('td a', '{COPIED}')"),
            Click("[...document.querySelectorAll('.MuiAccordionSummary-root')].find(e => e.innerText.includes('development'))"),
            Click("one('[data-testid=STRATEGY_FORM_COPY_ID]')"),
            Click("said('[role=menuitem]', 'Copy to production')"),
            Click(f"one('{THEIR_SWITCH}')"),
            CONFIRM,
        ),
        f"one('{THEIR_SWITCH}')?.checked === true",
    ),
)
