"""The one way loops are compiled."""

from __future__ import annotations

import numba

# Reordering of sums is allowed, so that they vectorise; comparisons with inf and nan keep their meaning.
FASTMATH = {"contract", "reassoc", "nsz", "arcp"}


def jit(function):
    """Compile `function` without the GIL, cached on disk wherever a folder can be written."""
    options = {"nogil": True, "fastmath": FASTMATH, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # numba found no writable cache folder
        return numba.njit(cache=False, **options)(function)
