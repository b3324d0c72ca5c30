"""Names that users may add to: summations, priors, starts, scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """What goes by which name. It is asked when a name is used, so that late additions are seen everywhere.

    Parameters
    ----------
    parameter : str
        What to call the argument in an error.
    alternative : str
        What may be given in the place of a name, for the error.

    Examples
    --------
    >>> from graphcouple._registry import Registry
    >>> colours = Registry("colour", "an RGB tuple")
    >>> colours.add("red", (1, 0, 0))
    >>> colours["blue"]
    Traceback (most recent call last):
    ...
    ValueError: colour must be one of ['red'] or an RGB tuple, got 'blue'.
    """

    def __init__(self, parameter: str, alternative: str) -> None:
        self.parameter, self.alternative = parameter, alternative
        self._known: dict[str, T] = {}

    def add(self, name: str, thing: T) -> None:
        """Make a thing known by a name."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"a {self.parameter} goes by a name of at least one letter, got {name!r}.")
        self._known[name] = thing

    def remove(self, name: str) -> None:
        """Forget a name."""
        del self._known[name]

    def register(self, name: str) -> Callable[[T], T]:
        """Return a decorator that makes what it decorates known by a name."""

        def remember(thing: T) -> T:
            self.add(name, thing)
            return thing

        return remember

    def names(self) -> list[str]:
        """Return the names known now."""
        return sorted(self._known)

    def __contains__(self, name: Any) -> bool:
        return isinstance(name, str) and name in self._known

    def __getitem__(self, name: Any) -> T:
        if not isinstance(name, str):
            raise TypeError(f"{self.parameter} must be one of {self.names()} or {self.alternative}, got {name!r}.")
        if name not in self._known:
            raise ValueError(f"{self.parameter} must be one of {self.names()} or {self.alternative}, got {name!r}.")
        return self._known[name]
