"""Formulas of one squared distance that NumPy evaluates and numba compiles.

A formula is a frozen dataclass of floats (or of other formulas) whose methods
take ``(self, sq_dist)`` and use only arithmetic and NumPy ufuncs. Such a method
runs on arrays as it stands, and the compiled loops run the very same source on
scalars: there is no second copy of a kernel to keep in step.
"""

from __future__ import annotations

import hashlib
import types
from collections.abc import Iterator

FORMULA_METHODS = (
    "log",
    "grad_log",
    "value",
    "log1p",
    "edge_probability",
    "log_complement",
    "log_odds",
    "grad_log_odds",
    "potential",
    "slope",
)
"""The method names that compiled loops may call on a formula."""


class Formula:
    """Base of everything a compiled loop may evaluate at a squared distance."""

    @property
    def compile_time_fields(self) -> tuple[str, ...]:
        """The fields whose present values are worth compiling for: branches on them then cost nothing."""
        return ()


def _code_parts(function: types.FunctionType, seen: set[int]) -> Iterator[str]:
    if id(function) in seen:
        return
    seen.add(id(function))
    yield from _bytecode_parts(function.__code__)
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if isinstance(used, (bool, int, float)):
            yield f"{name}={used!r}"
        elif isinstance(used, types.FunctionType):
            yield from _code_parts(used, seen)


def _bytecode_parts(code: types.CodeType) -> Iterator[str]:
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _bytecode_parts(constant)
        else:
            yield repr(constant)


def formula_digest(cls: type) -> str:
    """Return a digest of the source-level meaning of a formula class.

    It enters the compiled type's name, so that an edited formula never meets
    the machine code of its former self in numba's disk cache.
    """
    digest = hashlib.sha256(cls.__qualname__.encode())
    for name in FORMULA_METHODS:
        method = getattr(cls, name, None)
        if isinstance(method, types.FunctionType):
            digest.update(name.encode())
            for part in _code_parts(method, set()):
                digest.update(part.encode())
    return digest.hexdigest()[:12]
