"""The array types of the package, defined once.

Docstrings give shapes: R receivers, K slots of an inbox, N honest workers, D coordinates, E evaluations.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Booleans = npt.NDArray[np.bool_]
