"""One compiled loop for all formulas: it calls, by address, the code that fills a block of a formula's values.

Only that code is compiled for each formula, so a new kernel does not compile every loop anew.
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numba import float64, types
from numba.core import cgutils
from numba.extending import intrinsic, models, overload, register_model

from graphcouple._numba.base import Formula
from graphcouple._numba.formulas import FormulaType, type_of
from graphcouple._numba.jit import OPTIONS, jit

# The longest block: 256 doubles of each buffer stay in a processor's first cache.
BLOCK = 256

_BUFFER = float64[::1]
_ARGUMENTS = (_BUFFER, _BUFFER, _BUFFER, _BUFFER, types.boolean, types.boolean)


class Blocks(NamedTuple):
    """A radial function as every loop takes it.

    `code` is the address of the code that fills blocks of φ, of φ', or of both; `fields` are the floats of the formula,
    and of each formula in it, in their order.
    """

    code: int
    fields: np.ndarray


def in_blocks(radial: Formula) -> Blocks:
    """Return a radial function as every loop takes it; a new class of formulas is compiled."""
    kind = type_of(radial)
    return Blocks(_address(kind), np.array(list(_floats(kind, radial))))


def _floats(kind, formula):
    for name, inner in kind.fields:
        part = getattr(formula, name)
        if isinstance(inner, FormulaType):
            yield from _floats(inner, part)
        else:
            yield float(part)


@cache
def _address(kind):
    arguments = (_OnlyKind(kind), *_ARGUMENTS)
    _fill_block.compile(arguments)
    compiled = _fill_block.overloads[arguments]
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_func_name)


class _OnlyKind(types.Type):
    """The type of an argument that only tells which formula's code is compiled."""

    def __init__(self, formula):
        self.formula, self.storable = formula, formula.storable
        super().__init__(f"kind of {formula.name}")


@register_model(_OnlyKind)
class _OnlyKindModel(models.OpaqueModel):
    """A pointer to nothing."""


def _from_fields(context, builder, kind, fields, at):
    """Return the struct of a formula whose floats begin at `at`, and where they end."""
    struct = cgutils.create_struct_proxy(kind)(context, builder)
    for name, inner in kind.fields:
        if isinstance(inner, FormulaType):
            part, at = _from_fields(context, builder, inner, fields, at)
        else:
            part, at = builder.load(cgutils.gep_inbounds(builder, fields, at)), at + 1
        setattr(struct, name, part)
    return struct._getvalue(), at


@intrinsic
def _formula(typing_context, kind, fields):
    def code(context, builder, signature, arguments):
        floats = context.make_array(_BUFFER)(context, builder, arguments[1])
        return _from_fields(context, builder, kind.formula, floats.data, 0)[0]

    return kind.formula(kind, _BUFFER), code


@intrinsic
def _call(typing_context, code, fields, sq_dist, values, slopes, with_values, with_slopes):
    """Call the code at an address: `_fill_block`, compiled for a formula."""

    def generate(context, builder, signature, arguments):
        kinds = (types.voidptr, *_ARGUMENTS)
        function = context.call_conv.get_function_type(types.none, kinds)
        callee = builder.inttoptr(arguments[0], function.as_pointer())
        nothing = context.get_constant_null(types.voidptr)
        status, _ = context.call_conv.call_function(builder, callee, types.none, kinds, (nothing, *arguments[1:]))
        with builder.if_then(status.is_error, likely=False):
            context.call_conv.return_status_propagate(builder, status)
        return context.get_dummy_value()

    return types.none(types.int64, *_ARGUMENTS), generate


@jit
def _fill_block(kind, fields, sq_dist, values, slopes, with_values, with_slopes):
    formula = _formula(kind, fields)
    # Separate loops, so that branches on a formula's parameters are hoisted and the rest vectorises.
    if with_values:
        for j in range(sq_dist.size):
            values[j] = formula.potential(sq_dist[j])
    if with_slopes:
        for j in range(sq_dist.size):
            slopes[j] = formula.slope(sq_dist[j])


@jit
def evaluate(radial, sq_dist, values, slopes, with_values, with_slopes):
    """Fill φ(d²) and φ'(d²) of a block; without its flag, an array keeps its values."""
    _call(radial.code, radial.fields, sq_dist, values, slopes, with_values, with_slopes)


def fill(source, with_slopes, sq_dist, filled):
    """Fill φ(d²) of a block, or φ'(d²), from `Blocks` or another source that overloads this."""


@overload(fill, jit_options=OPTIONS)
def _fill_from_code(source, with_slopes, sq_dist, filled):
    def by_code(source, with_slopes, sq_dist, filled):
        evaluate(source, sq_dist, filled, filled, not with_slopes, with_slopes)

    return by_code if getattr(source, "instance_class", None) is Blocks else None
