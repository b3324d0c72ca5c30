"""Formulas of one squared distance that NumPy evaluates and numba compiles.

A formula is a frozen dataclass of floats (or of other formulas) whose methods take ``(self, sq_dist)`` and use only
arithmetic and NumPy ufuncs. Such a method runs on arrays, and the compiled loops run the same source on scalars, so
there is no second copy of a kernel to maintain.
"""

import dis
import hashlib
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

FORMULA_METHODS = (
    *("log", "grad_log", "value", "log1p", "edge_probability", "log_probability", "grad_log_probability"),
    *("log_complement", "log_odds", "grad_log_odds", "potential", "slope"),
)
"""The method names that compiled loops may call on a formula, with one number."""

TWO_NUMBER_METHODS = ("cost", "grad_cost")
"""The methods that take two numbers."""

# numba compiles their functions by name, and their constants do not change.
_KNOWN_MODULES = frozenset({"numpy", "math", "numba"})


class Formula:
    """Base class of functions that a compiled loop may evaluate at a squared distance."""

    @property
    def compile_time_fields(self) -> tuple[str, ...]:
        """The fields whose present values are compiled in, so that branches on them cost nothing."""
        return ()


def global_names(code: types.CodeType, steps: tuple[str, ...] = ("LOAD_GLOBAL", "LOAD_NAME")) -> tuple[str, ...]:
    """Return the names of globals and builtins that the code reads, or of other steps; attributes are left out."""
    names = {step.argval for step in dis.get_instructions(code) if step.opname in steps}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names.update(global_names(constant, steps))
    return tuple(sorted(names))


def reads(function: types.FunctionType) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield what a function reads: globals, closed-over values and attributes of modules; namespace, name and value."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    closed = {name: cell.cell_contents for name, cell in cells}
    namespaces = {"LOAD_GLOBAL": function.__globals__, "LOAD_NAME": function.__globals__, "LOAD_DEREF": closed}
    codes, seen = [function.__code__], set()
    for code in codes:
        steps = list(dis.get_instructions(code))
        for at, step in enumerate(steps):
            namespace = namespaces.get(step.opname, {})
            # A name such as config.WIDTH is read step by step.
            while step.argval in namespace:
                value = namespace[step.argval]
                if (id(namespace), step.argval) not in seen:
                    seen.add((id(namespace), step.argval))
                    yield namespace, step.argval, value
                at, step = at + 1, steps[at + 1]
                of_module = isinstance(value, types.ModuleType) and step.opname in ("LOAD_ATTR", "LOAD_METHOD")
                known = of_module and value.__name__.partition(".")[0] in _KNOWN_MODULES
                namespace = vars(value) if of_module and not known else {}
        codes += [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]


def formula_methods(cls: type) -> dict[str, types.FunctionType]:
    """Return the methods of a class that compiled loops may call, by name."""
    methods = ((name, getattr(cls, name, None)) for name in FORMULA_METHODS + TWO_NUMBER_METHODS)
    return {name: method for name, method in methods if isinstance(method, types.FunctionType)}


def own_globals(cls: type) -> tuple[tuple[dict[str, Any], str, Any], ...]:
    """Return what formulas from outside the package read; see `reads`."""
    waiting, visited, read = list(formula_methods(cls).values()), set(), []
    while waiting:
        function = waiting.pop()
        if function in visited or str(function.__globals__.get("__name__")).partition(".")[0] == "graphcouple":
            continue
        visited.add(function)
        for namespace, name, value in reads(function):
            read.append((namespace, name, value))
            helper = getattr(value, "py_func", value)
            waiting += [helper] if isinstance(helper, types.FunctionType) else []
    return tuple(read)


def _code_parts(function: types.FunctionType, visited_ids: set[int]) -> Iterator[str]:
    if id(function) in visited_ids:
        return
    visited_ids.add(id(function))
    yield from bytecode_parts(function.__code__)
    for _, name, value in reads(function):
        yield f"{name}="
        yield from _value_parts(value, visited_ids)
    for value in (*(function.__defaults__ or ()), *sorted((function.__kwdefaults__ or {}).items())):
        yield from _value_parts(value, visited_ids)


def _value_parts(value: Any, visited_ids: set[int]) -> Iterator[str]:
    """Yield the content of a value that a formula refers to: a constant, a helper function, or an array in full."""
    # numba's dispatchers hold the function they compile.
    value = getattr(value, "py_func", value)
    if isinstance(value, types.FunctionType):
        yield from _code_parts(value, visited_ids)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from _value_parts(part, visited_ids)
    elif isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}"
        yield hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    elif isinstance(value, types.ModuleType):
        yield value.__name__
    else:
        yield repr(value)


def bytecode_parts(code: types.CodeType) -> Iterator[str]:
    """Yield what a code does, as texts that are the same in every process."""
    yield code.co_code.hex()
    yield repr(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from bytecode_parts(constant)
        else:
            # The order of a set of texts differs from process to process.
            yield repr(sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant)


def has_recursive_helper(cls: type) -> bool:
    """Return whether a function that a formula's methods use calls itself, directly or through others."""

    def recurs(function: types.FunctionType, above: tuple[types.FunctionType, ...]) -> bool:
        if function in above:
            return True
        helpers = (getattr(value, "py_func", value) for _, _, value in reads(function))
        return any(recurs(value, (*above, function)) for value in helpers if isinstance(value, types.FunctionType))

    return any(recurs(method, ()) for method in formula_methods(cls).values())


def formula_digest(cls: type) -> str:
    """Return a digest of the source-level meaning of a formula class.

    It enters the compiled type's name, so that an edited formula never runs the machine code of an earlier version from
    numba's disk cache.
    """
    digest = hashlib.sha256(cls.__qualname__.encode())
    for name, method in formula_methods(cls).items():
        digest.update(name.encode())
        for part in _code_parts(method, set()):
            digest.update(part.encode())
    return digest.hexdigest()[:12]
