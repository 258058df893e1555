"""The weights that training starts from: `base: file.safetensors`, as `byzmesh export` or any PyTorch script writes it.

A config has the file with its SHA-256, {file: base.safetensors, sha256: ab12...}. So another file of that name is
another run; peers whose network file names the hash refuse to start from other weights, and peers with other hashes
belong to different runs and do not talk to each other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from byzmesh.errors import ConfigError, DataError, UnknownOption, nearest

_KEYS = ("file", "sha256")


def canonical_base(spec: Any) -> dict[str, str] | None:
    """The base of a config with its hash, which is that of the file unless the config names one."""
    if spec is None:
        return None
    given = {"file": spec} if isinstance(spec, str) else spec
    if not isinstance(given, Mapping) or not all(isinstance(given.get(key, ""), str) for key in _KEYS):
        raise ConfigError(f"base must be the path of a safetensors file, got {spec!r}")
    for key in given:
        if key not in _KEYS:
            raise UnknownOption(f"base has no option {key!r}: {nearest(str(key), _KEYS)}")
    if "file" not in given:
        raise ConfigError("base needs the path of a safetensors file; write base: file.safetensors")
    return {"file": given["file"], "sha256": given.get("sha256") or hashlib.sha256(_content(given["file"])).hexdigest()}


def _content(file: str) -> bytes:
    try:
        return Path(file).expanduser().read_bytes()
    except OSError as error:
        raise DataError(
            f"cannot read the base {file}: {error.strerror}; give the path of a safetensors file, as byzmesh export "
            "writes it"
        ) from None


def read_base(base: Mapping[str, str]) -> dict[str, Any]:
    """The tensors of a base by name, after checking its hash."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    content = _content(base["file"])
    found = hashlib.sha256(content).hexdigest()
    if found != base["sha256"]:
        raise DataError(
            f"base {base['file']} has other weights than this run: its SHA-256 is {found[:12]}..., the run's is "
            f"{base['sha256'][:12]}...; get the file that the others have"
        )
    try:
        tensors: dict[str, Any] = load(content)
    except SafetensorError as error:
        raise DataError(f"base {base['file']} is no safetensors file ({error}); byzmesh export writes one") from None
    return tensors


def load_base(module: Any, tensors: Mapping[str, Any], file: str) -> Any:
    """The module with the tensors of a base, which must be all of its own and no others."""
    own = module.state_dict()
    kind = type(module).__name__
    for name, value in own.items():
        if name not in tensors:
            raise DataError(f"base {file} has no {name!r}, which {kind} has; it is of another module")
        if tensors[name].shape != value.shape:
            raise DataError(
                f"base {file}: {name!r} has shape {tuple(tensors[name].shape)}, that of {kind} has "
                f"{tuple(value.shape)}; it is of another module"
            )
    more = sorted(set(tensors) - set(own))
    if more:
        raise DataError(f"base {file} has {more[0]!r}, which {kind} has not; it is of another module")
    module.load_state_dict(dict(tensors))
    return module
