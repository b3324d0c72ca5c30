"""How all loops are compiled."""

from __future__ import annotations

import contextlib
from typing import Any

import numba

# Sums may be reordered, so that they vectorise; comparisons with inf and nan stay valid.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}

# A call that is not inlined would prevent a loop from vectorising. Nothing calls the loops from C, and to compile what
# such calls need takes a fifth of the time.
HELPER: dict[str, Any] = {"error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True}


def jit(function):
    """Compile `function` without the GIL, cached on disk wherever a folder can be written."""
    options = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy", "no_cfunc_wrapper": True}
    try:
        dispatcher = numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no writable cache folder
        return numba.njit(cache=False, **options)(function)
    _store_what_can_be(dispatcher._cache)
    _forget_what_is_damaged(dispatcher._cache)
    return dispatcher


def _store_what_can_be(cache):
    """Let a compiled loop run even if storing its machine code fails."""
    save = cache.save_overload

    def save_if_possible(signature, data):
        if not all(getattr(kind, "storable", True) for kind in data.signature.args):
            return
        with contextlib.suppress(OSError):
            save(signature, data)

    cache.save_overload = save_if_possible


def _forget_what_is_damaged(cache):
    """Let a loop be compiled anew if what is stored of it cannot be read, and be stored again."""
    load = cache.load_overload

    def load_if_possible(signature, context):
        try:
            return load(signature, context)
        except Exception:
            # A file that is cut short or holds anything else fails to unpickle in any way.
            with contextlib.suppress(Exception):
                cache._cache_file.flush()
            return None

    cache.load_overload = load_if_possible
