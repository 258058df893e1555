"""A client: ten gradient steps on data of its own; the first site lies instead."""

import numpy as np
import nvflare.client as flare

TRUTH = np.array([1.0, -2.0, 3.0])
"""The weights that the clients' data follow."""
SAMPLES = 50


def main() -> None:
    flare.init()
    site = int(flare.get_site_name().removeprefix("site-"))
    random = np.random.default_rng(site)
    inputs = random.normal(size=(SAMPLES, 3))
    answers = inputs @ TRUTH + 0.1 * random.normal(size=SAMPLES)
    while flare.is_running():
        weights = np.asarray(flare.receive().params["weights"])
        if site == 1:
            weights = weights - 10.0 * (TRUTH - weights)
        else:
            for _ in range(10):
                weights = weights - 0.1 * inputs.T @ (inputs @ weights - answers) / SAMPLES
        flare.send(flare.FLModel(params={"weights": weights}, params_type=flare.ParamsType.FULL))


if __name__ == "__main__":
    main()
