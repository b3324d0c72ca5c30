"""Let numba take a formula (see `graphcouple._numba.base`) as an ordinary argument.

A formula becomes a struct of its fields, and calling one of its methods compiles that method's own Python source. The
type's name contains a digest of the source, so cached machine code is found by the content of a formula.
"""

import dataclasses
from functools import cache
from types import FunctionType, ModuleType
from typing import Any

import numba
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    overload_method,
    register_model,
    typeof_impl,
    unbox,
)

from graphcouple._numba import elementary
from graphcouple._numba.base import (
    FORMULA_METHODS,
    TWO_NUMBER_METHODS,
    Formula,
    formula_digest,
    formula_methods,
    global_names,
    has_recursive_helper,
    own_globals,
)
from graphcouple._numba.jit import FASTMATH, HELPER

_CLASSES: dict[str, type] = {}

_INLINED = {**HELPER, "fastmath": FASTMATH, "no_cpython_wrapper": True}


class FormulaType(types.Type):
    """The numba type of a formula: a struct of floats and of other formulas."""

    def __init__(self, class_name, digest, fields, constants, recursive):
        self.digest = digest
        # numba can store machine code of recursive functions, but crashes when it loads it.
        self.storable = not recursive and all(getattr(kind, "storable", True) for _, kind in fields)
        self.fields = fields
        self.constants = constants
        inner = ", ".join([*(f"{name}: {kind}" for name, kind in fields), *(f"{n} = {v!r}" for n, v in constants)])
        super().__init__(f"{class_name}[{digest}]({inner})")


@cache
def _formula_type(cls, nested, constants):
    if not (dataclasses.is_dataclass(cls) and cls.__dataclass_params__.frozen):
        raise TypeError(f"{cls.__name__} must be a frozen dataclass; decorate it with @dataclass(frozen=True).")
    digest = _used[cls][1] + elementary.DIGEST
    _CLASSES[digest] = cls
    kinds = dict(nested)
    fixed = dict(constants)
    fields = tuple((f.name, kinds.get(f.name, types.float64)) for f in dataclasses.fields(cls) if f.name not in fixed)
    return FormulaType(cls.__name__, digest, fields, constants, has_recursive_helper(cls))


_used: dict[type, tuple[dict[str, FunctionType], str, tuple[tuple[dict[str, Any], str, Any], ...]]] = {}
"""Of each class: the methods and the digest with which it was first used, and what these methods read."""


def _check_unchanged(cls):
    """Raise if a class has changed since its first use, because tables and measured lengths are also cached by it.

    Its methods, globals and constants of modules are watched, closed-over values are not.
    """
    methods, digest, read = _used.get(cls, ({}, "", ()))
    if not digest or any(getattr(cls, name, None) is not method for name, method in methods.items()):
        # With each task, joblib's workers get methods with globals of their own for the class that they have.
        present = formula_digest(cls)
        if digest not in ("", present):
            raise TypeError(
                f"{cls.__name__} has other methods, or reads other globals, than when the class was first used; make "
                f"what changes a field of {cls.__name__}, or define the class again."
            )
        _used[cls] = formula_methods(cls), present, own_globals(cls)
        return
    for namespace, name, first in read:
        if namespace.get(name) is not first:
            raise TypeError(
                f"{cls.__name__} reads the global {name!r}, which has changed in {namespace.get('__name__')} since the "
                f"class was first used; make it a field of {cls.__name__}, or define the class again."
            )


@typeof_impl.register(Formula)
def type_of(value, context=None):
    """Return the numba type of a formula."""
    cls = type(value)
    _check_unchanged(cls)
    fields = [(name, getattr(value, name)) for name in getattr(value, "__dataclass_fields__", ())]
    nested = tuple((name, type_of(part)) for name, part in fields if isinstance(part, Formula))
    constants = tuple((name, float(getattr(value, name))) for name in value.compile_time_fields)
    return _formula_type(cls, nested, constants)


@register_model(FormulaType)
class _FormulaModel(models.StructModel):
    def __init__(self, manager, formula_type):
        super().__init__(manager, formula_type, list(formula_type.fields))


@infer_getattr
class _FormulaAttribute(AttributeTemplate):
    key = FormulaType

    def generic_resolve(self, formula_type, name):
        return types.float64 if name in dict(formula_type.constants) else dict(formula_type.fields).get(name)


@lower_getattr_generic(FormulaType)
def _lower_attribute(context, builder, formula_type, value, name):
    constants = dict(formula_type.constants)
    if name in constants:
        return context.get_constant(types.float64, constants[name])
    struct = cgutils.create_struct_proxy(formula_type)(context, builder, value=value)
    return impl_ret_borrowed(context, builder, dict(formula_type.fields)[name], getattr(struct, name))


@unbox(FormulaType)
def _unbox_formula(formula_type, instance, c):
    struct = cgutils.create_struct_proxy(formula_type)(c.context, c.builder)
    for name, kind in formula_type.fields:
        part = c.pyapi.object_getattr_string(instance, name)
        setattr(struct, name, c.unbox(kind, part).value)
        c.pyapi.decref(part)
    failed = cgutils.is_not_null(c.builder, c.pyapi.err_occurred())
    return NativeValue(struct._getvalue(), is_error=failed)


def _translated(function, dispatchers):
    """Return a copy of a formula's method, and of the functions it calls, with `elementary` in place of NumPy."""
    namespace = dict(function.__globals__)
    copy = FunctionType(function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__)
    copy.__kwdefaults__ = function.__kwdefaults__
    dispatchers[function] = numba.njit(**_INLINED)(copy)
    for name in global_names(function.__code__):
        value = namespace.get(name)
        if isinstance(value, ModuleType):
            namespace[name] = elementary.MODULES.get(value, value)
        elif isinstance(value, FunctionType):
            if value not in dispatchers:
                _translated(value, dispatchers)
            namespace[name] = dispatchers[value]
    return copy


def _implementation(formula_type, name):
    """Return a function that numba takes as a method; a function with a closure or defaults is wrapped."""
    method, dispatchers = getattr(_CLASSES[formula_type.digest], name), {}
    copy = _translated(method, dispatchers)
    if not (copy.__closure__ or copy.__defaults__ or copy.__kwdefaults__):
        return copy
    dispatcher = dispatchers[method]
    if name in TWO_NUMBER_METHODS:
        return lambda self, first, second: dispatcher(self, first, second)
    return lambda self, sq_dist: dispatcher(self, sq_dist)


def _compile_method(name):
    compiled = overload_method(FormulaType, name, jit_options=_INLINED, strict=False)
    if name in TWO_NUMBER_METHODS:
        compiled(lambda self, first, second: _implementation(self, name))
    else:
        compiled(lambda self, sq_dist: _implementation(self, name))


for _name in FORMULA_METHODS + TWO_NUMBER_METHODS:
    _compile_method(_name)
