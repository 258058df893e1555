"""The signed network files in a peer's folder: what it knew when it last ran.

    peer3.network.yaml         the file in force
    peer3.epoch-7-91c3.yaml    one that will be

Nothing is written before the peer knows that the folder is its own: a network file given by mistake must not replace
what the folder remembers of another run.
"""

from __future__ import annotations

from pathlib import Path

from byzmesh.config.yaml import parse_yaml
from byzmesh.errors import ByzmeshError, PeerError
from byzmesh.files import write
from byzmesh.peers.epochs import Epochs, order
from byzmesh.peers.logs import Log
from byzmesh.peers.network_file import NetworkFile, signed_network
from byzmesh.peers.signing import verify


class Shelf:
    """The files of one peer in its folder; without a folder, none."""

    def __init__(self, out: str | Path | None, me: int, log: Log) -> None:
        self._out = None if out is None else Path(out)
        self.me, self._log = me, log

    def read(self, given: NetworkFile) -> Epochs:
        """What the peer knows: the files of its folder, from the one that was in force, and the one it was given."""
        epochs = Epochs(given)
        if self._out is not None:
            in_force = self._remembered(self._in_force, given)
            if in_force is not None:
                epochs = Epochs(in_force)
            for path in self._later():
                file = self._remembered(path, given)
                if file is not None:
                    epochs.add(file)
            epochs.add(given)
        return epochs

    @property
    def _in_force(self) -> Path:
        return (self._out or Path()) / f"peer{self.me}.network.yaml"

    def _later(self) -> list[Path]:
        return sorted(self._out.glob(f"peer{self.me}.epoch-*.yaml")) if self._out is not None else []

    def _remembered(self, path: Path, given: NetworkFile) -> NetworkFile | None:
        """A file of this run; None if there is none, or a damaged one. `PeerError` if it is of another run."""
        if not path.exists():
            return None
        try:
            text = path.read_bytes()
            operator = str(parse_yaml(text.decode(errors="replace"), ids=True, where=str(path)).get("operator"))
            verify(text, operator)
            file = signed_network(text, operator, given.folder) if operator == given.operator else None
        except (ByzmeshError, OSError) as error:
            self._log("damaged", path=str(path), text=str(error))
            return None
        if file is None or file.run != given.run:
            raise PeerError(f"{path} belongs to another run than the network file; choose another --out")
        return file

    def keep(self, files: list[NetworkFile]) -> None:
        """Have these files in the folder, the one in force first, and no others."""
        if self._out is None:
            return
        first, *later = files
        wanted = {self._in_force: first.text}
        for file in later:
            wanted[self._out / f"peer{self.me}.epoch-{file.epoch}-{order(file)[1][:4].hex()}.yaml"] = file.text
        try:
            for path, text in wanted.items():
                if not path.exists() or path.read_bytes() != text:
                    write(path, text, durable=True)
            for path in self._later():
                if path not in wanted:
                    path.unlink(missing_ok=True)
        except (ByzmeshError, OSError) as error:
            self._log("not written", path=str(self._out), error=str(error))
