"""The models that runs keep: safetensors files in a folder beside the store, `runs.db.models` for `runs.db`.

    KEY.safetensors         `models` (N, D): the honest workers' models when the run ended, a row per worker
    KEY-ROUND.safetensors   the same at an evaluation (`all` keeps these too)
    KEY.state               everything the next round depends on: a run with more rounds continues from here

The entry `byzmesh` of a safetensors file's metadata is JSON: the `workers` of the rows (ids in the config's network),
the `round`, the `status` and the `config`. A file is either whole or missing, and is written before the store calls its
run finished.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import DataError, StoreError
from byzmesh.files import replacing
from byzmesh.networks import Network
from byzmesh.renamed import as_of_today
from byzmesh.simulation.engine import Simulation

KEEP = ("none", "final", "all")
"""What runs keep of their models: nothing, the last ones, or also those of each evaluation."""

METADATA = "byzmesh"

Write = Callable[[str, bytes], None]
"""Called with (what follows the key in the file's name, content)."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """Models of a run at one moment.

    models   (N, D) of the honest workers
    workers  (N,) their ids in the config's network
    """

    models: npt.NDArray[Any]
    workers: list[int]
    round: int
    status: str
    config: dict[str, Any]


def models_folder(store: Path) -> Path:
    """The folder of the models of a store's runs.

    >>> models_folder(Path("runs.db")).name
    'runs.db.models'
    """
    return store.with_name(store.name + ".models")


def models_file(store: Path, key: str, round: int | None = None) -> Path:
    """The file of a run's models: the last ones, or those of an evaluation."""
    return models_folder(store) / f"{key}{_ending(round)}"


def kept_rounds(store: Path, key: str) -> list[int]:
    """The evaluations of a run whose models were kept."""
    names = [path.name.removesuffix(".safetensors") for path in models_folder(store).glob(f"{key}-*.safetensors")]
    return sorted(int(name.partition("-")[2]) for name in names)


def state_file(store: Path, key: str) -> Path:
    """The file of a run's last state."""
    return models_folder(store) / f"{key}.state"


def _ending(round: int | None) -> str:
    return ".safetensors" if round is None else f"-{round}.safetensors"


def pack(simulation: Simulation) -> bytes:
    """A simulation's honest models now, as the content of a safetensors file."""
    from safetensors.numpy import save

    run = simulation.result()
    facts = {
        "workers": worker_ids(run.config),
        "round": run.rounds,
        "status": run.status,
        "config": dict(run.config),
    }
    # in one entry: safetensors writes several in any order, and the same run must give the same bytes
    content: bytes = save({"models": np.ascontiguousarray(run.models)}, {METADATA: json.dumps(facts)})
    return content


def worker_ids(config: Mapping[str, Any]) -> list[int]:
    """Ids of the honest workers in the user's network, although a run without an attack renumbers them."""
    ids: list[int] = Network.from_spec(config["network"]).honest.tolist()
    return ids


def read_models(path: Path) -> Models:
    """The models of a file; `DataError` if it is damaged."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "np") as file:
            facts, models = json.loads(file.metadata()[METADATA]), file.get_tensor("models")
        return Models(models=models, **{**facts, "config": as_of_today(facts["config"])})
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:
        raise DataError(f"{path} contains no models of a run ({error}); compute the run again to get them") from error


@dataclass(frozen=True)
class Keeper:
    """Writes the models that a run keeps while it is computed.

    keep   one of `KEEP`
    write  takes the files
    state  where the last state goes; None: nowhere
    """

    keep: str
    write: Write
    state: Path | None = None

    def evaluated(self, simulation: Simulation) -> None:
        """Called after an evaluation."""
        if self.keep == "all":
            self.write(_ending(simulation.round), pack(simulation))

    def ended(self, simulation: Simulation) -> None:
        """Called after the last round, before the result is stored."""
        if self.keep == "none":
            return
        self.write(_ending(None), pack(simulation))
        if self.state is not None:
            with _explained(self.state):
                simulation.save(self.state)


def keeper(store: Path, key: str, keep: str) -> Keeper:
    """A keeper that writes the models of a run beside its store."""
    return Keeper(keep, writer(store, key), state_file(store, key))


def writer(store: Path, key: str) -> Write:
    """A function that writes the files of a run beside the store; `StoreError` if it cannot."""

    def write(ending: str, content: bytes) -> None:
        path = models_folder(store) / f"{key}{ending}"
        with _explained(path), replacing(path) as file:
            file.write(content)

    return write


@contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        path.parent.mkdir(exist_ok=True)
        yield
    except OSError as error:
        raise StoreError(
            f"the models of a run could not be written to {path} ({error.strerror or error}); free some space or make "
            "the folder writable and try again, or keep none: --keep-models none"
        ) from error
