"""A journal of changes, so that the latest changes can be reversed without a copy of the earlier state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Journal:
    """Changes in order, each with the call that reverses it.

    Five changes of a set, and back to the state after the second:

    >>> numbers, journal = set(), Journal()
    >>> for number in range(5):
    ...     numbers.add(number)
    ...     journal.note(numbers.discard, number)
    >>> journal.rewind(2)
    >>> numbers
    {0, 1}
    """

    def __init__(self) -> None:
        self.n_rewound = 0  # calls of `rewind`
        self._calls: list[Callable[..., object]] = []
        self._arguments: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._calls)

    def note(self, take_back: Callable[..., object], *arguments: Any) -> None:
        """Record a change. ``take_back(*arguments)`` reverses it."""
        self._calls.append(take_back)
        self._arguments.append(arguments)

    def rewind(self, length: int) -> None:
        """Take back all changes after the first `length`, the latest first."""
        self.n_rewound += 1
        while len(self._calls) > length:
            self._calls.pop()(*self._arguments.pop())
