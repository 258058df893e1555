"""Values as text that is the same in every process: arrays, compiled code, and what counts as data."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import sys
from pathlib import Path
from types import CodeType, MappingProxyType, ModuleType, SimpleNamespace
from typing import Any

PLAIN: tuple[type[Any], ...] = (bool, int, float, complex, str, bytes)
MAPPINGS = (dict, collections.OrderedDict, collections.Counter, MappingProxyType)
SETS = (set, frozenset)
CONTAINERS: tuple[type[Any], ...] = (dict, list, tuple, *SETS)
_HAS_DOCSTRING = 0x4000000
_FUNCTION = 0x0002


def is_data(value: Any) -> bool:
    """Whether it is a number, a text, an array, or a container or record of such.

    The path of a file is not: it differs by machine.

    >>> is_data({"tau": [0.1, None]}), is_data(Path("/tmp")), is_data("/home/me/data.csv"), is_data(len)
    (True, False, False, False)
    """
    if isinstance(value, str):
        return not Path(value).is_absolute()
    if value is None or isinstance(value, PLAIN) or is_array(value) or is_tensor(value) or is_network(value):
        return True
    if isinstance(value, MappingProxyType | dict) and not isinstance(value, collections.defaultdict):
        return all(is_data(item) for pair in value.items() for item in pair)
    if isinstance(value, (list, tuple, collections.deque, *SETS)):
        return all(map(is_data, value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return all(is_data(getattr(value, field.name, None)) for field in dataclasses.fields(value))
    return isinstance(value, SimpleNamespace) and is_data(vars(value))


def is_frozen(value: Any) -> bool:
    """Whether data cannot be changed in place.

    >>> is_frozen((1, "a")), is_frozen([1])
    (True, False)
    """
    return all(map(is_frozen, value)) if isinstance(value, tuple) else value is None or isinstance(value, PLAIN)


def is_array(value: Any) -> bool:
    """Whether it is a NumPy array or scalar."""
    return type(value).__module__ == "numpy" and hasattr(value, "tobytes")


def is_tensor(value: Any) -> bool:
    """Whether it is a torch tensor; torch need not be installed."""
    return type(value).__module__.startswith("torch") and hasattr(value, "untyped_storage")


def is_network(value: Any) -> bool:
    """Whether it is a torch module, with its weights."""
    return any(base.__module__ == "torch.nn.modules.module" for base in type(value).__mro__)


def array_text(value: Any) -> str:
    """Type, shape and contents of an array without objects."""
    return f"array {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}"


def tensor_text(value: Any) -> str:
    """Type, shape and contents of a tensor, wherever it lives."""
    flat = value.detach().cpu().contiguous().flatten()
    content = hashlib.sha256(flat.view(sys.modules["torch"].uint8).numpy().tobytes()).hexdigest()
    return f"tensor {value.dtype} {tuple(value.shape)} {content}"


def slots(kind: type) -> tuple[str, ...]:
    """The slots that a class itself defines."""
    names = vars(kind).get("__slots__", ())
    return (names,) if isinstance(names, str) else tuple(names)


def content(cell: Any) -> Any:
    """What a closure captured."""
    try:
        return cell.cell_contents
    except ValueError:  # not yet filled
        return None


def is_found(value: Any, name: str) -> bool:
    """Whether the name leads to this object in some module, so that it says which object it is.

    >>> is_found(len, "len"), is_found(lambda: 0, "<lambda>")
    (True, False)
    """
    first, *rest = name.split(".")
    for module in list(sys.modules.values()):
        known = vars(module).get(first) if isinstance(module, ModuleType) else None
        for part in rest:
            known = getattr(known, part, None)
        if known is value:
            return True
    return False


def code_text(code: CodeType) -> str:
    """Compiled code without its docstring and positions, and the code defined in it."""
    constants = list(code.co_consts)
    documented = code.co_flags & _HAS_DOCSTRING if sys.version_info >= (3, 13) else code.co_flags & _FUNCTION
    if documented and constants and isinstance(constants[0], str):
        constants[0] = None
    shown = [_constant(item) for item in constants]
    return f"{code.co_code.hex()} {code.co_names} {code.co_varnames} {code.co_freevars} {shown}"


def _constant(value: Any) -> str:
    if isinstance(value, CodeType):
        return code_text(value)
    if isinstance(value, frozenset):  # in another order in another process
        return f"set {sorted(map(_constant, value))}"
    return f"{type(value).__name__} {value!r}"
