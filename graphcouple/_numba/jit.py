"""How all loops are compiled."""

import contextlib
from typing import Any

import numba

# Sums may be reordered, so that they vectorise; comparisons with inf and nan stay valid.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}

# A call that is not inlined would prevent a loop from vectorising. Nothing calls the loops from C, and compiling a
# wrapper for C takes a fifth of the time.
HELPER: dict[str, Any] = {"error_model": "numpy", "forceinline": True, "no_cfunc_wrapper": True}

OPTIONS: Any = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy", "no_cfunc_wrapper": True}


def jit(function):
    """Compile `function` without the GIL, cached on disk wherever a folder can be written."""
    if numba.config.DISABLE_JIT:
        raise RuntimeError(
            "graphcouple needs numba's compiler: its loops call kernels as machine code; unset NUMBA_DISABLE_JIT, or "
            "set numba.config.DISABLE_JIT = False before graphcouple is used."
        )
    try:
        dispatcher = numba.njit(cache=True, **OPTIONS)(function)
    except RuntimeError:  # numba found no writable cache folder
        return numba.njit(cache=False, **OPTIONS)(function)
    _tolerate_unstorable(dispatcher._cache)
    _tolerate_damaged(dispatcher._cache)
    return dispatcher


def _tolerate_unstorable(cache):
    """Run a compiled loop even if its machine code cannot be stored."""
    save = cache.save_overload

    def save_if_possible(signature, data):
        if not all(getattr(kind, "storable", True) for kind in data.signature.args):
            return
        with contextlib.suppress(OSError):
            save(signature, data)

    cache.save_overload = save_if_possible


def _tolerate_damaged(cache):
    """Compile a loop anew, and store it again, if its stored machine code cannot be read or is another loop's.

    Two processes that store code for two formulas at once can give both one file, so the signature is compared.
    """
    load = cache.load_overload

    def load_if_possible(signature, context):
        try:
            stored = load(signature, context)
        except Exception:
            # A truncated file can fail to unpickle in any way, and a kernel's module may be missing here.
            _keep_readable(cache._cache_file)
            return None
        return stored if stored is None or stored.signature.args == tuple(signature) else None

    cache.load_overload = load_if_possible


def _keep_readable(file):
    """Empty the index of a loop's stored code if it cannot be read; the code of other kernels stays."""
    try:
        file._load_index()
    except Exception:
        with contextlib.suppress(Exception):
            file.flush()
