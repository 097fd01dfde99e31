"""The users that a configuration lists, read backwards: which lists hold a user. Compiled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from mypy_extensions import mypyc_attr

from flagsvc.engine.context import USER_ID, Context

MAX_USERS: Final = 65_536
"""The users of short lists. Beyond them, and in a longer list, users are looked up list by list."""
READ_AT_ONCE: Final = 1000
"""Users that are read in one step, and the users of the longest short list."""
COPIED: Final = 16
"""Users that are copied while one is read."""
LAST_NUMBER: Final = 1 << 30
"""The number of a list after which all are numbered again: programs have 31 bits for it."""
NONE: Final[tuple[int, ...]] = ()


@mypyc_attr(acyclic=True)
class UserLists:
    """The users that a configuration lists, in strategies by user id and in constraints on `userId`, read backwards.

    `lists` are the lists by their numbers. `users` has for each user the numbers of the lists that hold it, apart from `long` ones.
    """

    def __init__(self) -> None:
        self.lists: dict[int, set[str] | frozenset[str]] = {}
        self.numbers: dict[int, int] = {}
        self.users: dict[str, tuple[int, ...]] = {}
        # the numbers of users who are in several lists, while lists are read: a tuple would be copied for each further list
        self.growing: dict[str, list[int]] = {}
        self.long: list[int] = []
        self.last: int = 0

    def read(self, lists: list[set[str] | frozenset[str]], former: UserLists) -> Iterator[int]:
        """Read lists, and yield the number of users of each step. Lists in `former` are not read again."""
        if former.last > LAST_NUMBER:
            former = UserLists()
        self.last = former.last
        kept = [each for each in lists if id(each) in former.numbers]
        if len(kept) > 0:
            self.users = former.users.copy()
            yield len(self.users) // COPIED
        for each in kept:
            self.add_number(each, former.numbers[id(each)])
        self.long = [number for number in former.long if number in self.lists]
        for number, gone in former.lists.items():
            if len(kept) > 0 and number not in self.lists and number not in former.long:
                yield self.remove(number, gone)
        for each in lists:
            if id(each) not in self.numbers:
                self.last += 1
                self.add_number(each, self.last)
                yield self.add(self.last, each)
        for user, numbers in self.growing.items():
            self.users[user] = tuple(numbers)
        self.growing = {}

    def add_number(self, users: set[str] | frozenset[str], number: int) -> None:
        self.numbers[id(users)] = number
        self.lists[number] = users

    def add(self, number: int, users: set[str] | frozenset[str]) -> int:
        """Read a list, and return the number of users that were read."""
        if len(users) > READ_AT_ONCE or len(self.users) >= MAX_USERS:
            self.long.append(number)
            return 0
        # Most users are in one list, so that all of a list share this. Compiled code keeps a tuple of unknown length as one object.
        alone: tuple[int, ...] = (number,)
        for user in users:
            known = self.users.get(user)
            if known is None:
                self.users[user] = alone
            elif user in self.growing:
                self.growing[user].append(number)
            else:
                self.growing[user] = [*known, number]
        return len(users)

    def remove(self, number: int, users: set[str] | frozenset[str]) -> int:
        for user in users:
            left = tuple([each for each in self.users[user] if each != number])
            if left:
                self.users[user] = left
            else:
                del self.users[user]
        return len(users)

    def has_just(self, lists: list[set[str] | frozenset[str]]) -> bool:
        """Return whether these are all lists, in any order."""
        for each in lists:
            if id(each) not in self.numbers:
                return False
        return len(lists) == len(self.numbers)

    def holding(self, context: Context) -> tuple[int, ...]:
        user = context.read(USER_ID, "userId") if self.lists else None
        if user is None:
            return NONE
        found = self.users.get(user, NONE)
        if not self.long:
            return found
        return (*found, *[number for number in self.long if user in self.lists[number]])

    def number(self, users: frozenset[str]) -> int:
        return self.numbers[id(users)]
