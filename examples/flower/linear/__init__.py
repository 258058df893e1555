"""Linear regression with Flower, in which a client lies; see docs/integrations.md."""

import numpy as np

TRUTH = np.array([1.0, -2.0, 3.0])
"""The weights that the clients' data follow."""
