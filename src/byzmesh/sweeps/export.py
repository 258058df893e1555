"""The model of a run as a file that PyTorch loads: safetensors, or a `state_dict` written by `torch.save`.

Of the folder of `byzmesh run --out` only the checkpoint is read: it is there in the middle of a run and at its end, and
holds the config, from which the module and its frozen parameters are made again (the data set must be there for that).
"""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from byzmesh.errors import ConfigError, MissingExtra
from byzmesh.files import write
from byzmesh.networks import Network
from byzmesh.problems.neural.modules import import_torch
from byzmesh.sweeps.build import build
from byzmesh.torch import state_dict
from byzmesh.training.checkpoint import load_checkpoint

ENDINGS = (".safetensors", ".pt", ".pth")


@dataclass(frozen=True)
class Exported:
    """What was written."""

    path: Path
    whose: str
    """`worker 3`, or `mean of 10 workers`."""
    round: int
    status: str
    parameters: int


def export(out: Path, to: Path, worker: int | None = None) -> Exported:
    """Write the model of an honest worker of the run in `out`, by its id in the config's network, to `to`.

    worker  default: the mean of all honest models, the point that the workers' consensus is about
    to      its ending says the format: .safetensors, or .pt or .pth for `torch.load(..., weights_only=True)`
    """
    if to.suffix not in ENDINGS:
        raise ConfigError(f"--to must end in {', '.join(ENDINGS)}, got {to.name!r}; name the file model.safetensors")
    torch = import_torch("export")
    checkpoint = out / "checkpoint.byz"
    if not checkpoint.exists():
        raise ConfigError(f"{out} holds no checkpoint.byz; give the folder that byzmesh run --out wrote")
    arrays, metadata = load_checkpoint(checkpoint)
    config, round, status = metadata["config"], metadata["round"], metadata["status"]
    here = {"device": "cpu"} if "device" in config["problem"] else {}  # a run on a GPU is exported anywhere
    simulation = build({**config, "problem": config["problem"] | here})
    models = arrays["models"][simulation.honest_row]
    # a run without an attack numbers the honest workers anew; users know the ids of their own network
    vector, whose = _choose(models, Network.from_spec(config["network"]).honest.tolist(), worker)
    # shared weights are written under each of their names, so that load_state_dict finds them all
    entries = {
        name: value.cpu().clone(memory_format=torch.contiguous_format)
        for name, value in state_dict(simulation.task, vector).items()
    }
    if to.suffix == ".safetensors":
        try:
            import safetensors.torch
        except ImportError:
            raise MissingExtra("torch", "export to .safetensors") from None

        facts = {"format": "pt", "whose": whose, "round": str(round), "config": json.dumps(config)}
        content = safetensors.torch.save(entries, facts)
    else:
        buffer = io.BytesIO()
        torch.save(entries, buffer)
        content = buffer.getvalue()
    write(to, content, option="--to")
    return Exported(to, whose, round, status, vector.size)


def _choose(models: npt.NDArray[Any], honest: list[int], worker: int | None) -> tuple[npt.NDArray[Any], str]:
    """(D,) the vector meant among models (N, D), and whose it is."""
    if worker is None:
        mean: npt.NDArray[Any] = models.mean(axis=0, dtype=np.float64).astype(models.dtype)
        return mean, f"mean of {len(models)} workers"
    if worker not in honest:
        known = ", ".join(map(str, honest))
        raise ConfigError(f"--worker must be the id of an honest worker, got {worker}; choose among {known}")
    return models[honest.index(worker)], f"worker {worker}"
