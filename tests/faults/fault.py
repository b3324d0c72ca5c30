"""A seeded fault."""

from typing import NamedTuple


class Fault(NamedTuple):
    """A line of the package and what it is changed into."""

    name: str
    file: str
    before: str
    after: str
    tests: str
