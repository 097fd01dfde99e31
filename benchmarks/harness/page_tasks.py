"""Four tasks of a person, as steps at our pages and at those of the real server: the shortest way that each has, in actions."""

from __future__ import annotations

from typing import NamedTuple

FLAGS = 20
NAMES = [f"team-{number % 5}.feature-{number:02}" for number in range(FLAGS)]
SWITCHED, ASKED, COPIED = NAMES[5], NAMES[7], NAMES[8]
"""The flag to switch off, a flag that leaves out user 7, and a flag that is in development only."""
CREATED = "team-0.feature-new"
"""The flag to create."""
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
    """Write where the focus is, or, with a target, into what a script finds, over what is there."""

    text: str
    target: str = ""


class Task(NamedTuple):
    """What a person does in the list of flags, and the script that says whether the page shows that it is done."""

    title: str
    steps: tuple[Click | Write, ...]
    done: str
    phone: bool = False


CREATE, OFF, WHY, COPY = "create it for 25 % in DE", "switch it off, on a phone", "why not user 7", "copy to production"
OUR_TASKS = (
    Task(
        CREATE,
        (
            Click("said('a.button', 'Create flag')"),
            Write(CREATED),
            Click("one('[name=on][value=production]')"),
            Write("25", "one('[name=rollout]')"),
            Write("country", "one('[id=\"c0.field\"]')"),
            Write("DE", "one('[id=\"c0.values\"]')"),
            Click("said('.buttons button.main', 'Create')"),
            Click("said('button.main', 'Create and switch on')"),
        ),
        "one('#notice .done')?.innerText.includes('in production')",
    ),
    Task(
        OFF,
        (
            Click(f"row('{SWITCHED}')?.querySelector('[role=switch][aria-label$=production]')"),
            Click("said('button', 'Switch off')"),
        ),
        "one('#notice')?.innerText.includes('Arrived at 1 of 1 proxy after')",
        phone=True,
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
        CREATE,
        (
            Click("said('button', 'New feature flag')"),
            Write(CREATED),
            Click("said('button', 'Create feature flag')"),
            Click("[...document.querySelectorAll('[data-testid=ADD_STRATEGY_BUTTON]')].at(-1)"),
            Click("said('button', 'Configure')"),
            Click("said('.MuiSlider-markLabel', '25%')"),
            Click("one('[data-testid=STRATEGY_TARGETING_TAB]')"),
            Click("one('[data-testid=ADD_CONSTRAINT_BUTTON]')"),
            Click("one('#context-field-select')"),
            Click("[...document.querySelectorAll('[role=option]')].find(each => each.innerText.startsWith('country'))"),
            Click("one('[data-testid=CONSTRAINT_ADD_VALUES_BUTTON]')"),
            Write("DE"),
            Click("one('.MuiPopover-root button[type=submit]')"),
            Click("one('[data-testid=STRATEGY_FORM_SUBMIT_ID]')"),
            CONFIRM,
            Click(f"one('{THEIR_SWITCH}')"),
            CONFIRM,
        ),
        f"one('{THEIR_SWITCH}')?.checked === true",
    ),
    Task(
        OFF,
        (Click(f"said('td a', '{SWITCHED}')"), Click(f"one('{THEIR_SWITCH}')"), CONFIRM),
        f"one('{THEIR_SWITCH}')?.checked === false",
        phone=True,
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
