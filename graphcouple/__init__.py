"""graphcouple: probabilistic graph coupling for dimensionality reduction.

An embedding method is a sentence: a law of a hidden graph given X, a law of a
hidden graph given Z, coupled by cross-entropy. The public names load on first
use, so importing the package costs next to nothing.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
