"""The SQLite store of runs: no run is computed twice, lost or confused with another."""

from byzmesh.store.keys import config_key
from byzmesh.store.owners import Owner, this_process
from byzmesh.store.records import ENDED, Comparison, RunRecord
from byzmesh.store.store import Store, open_store

__all__ = ["ENDED", "Comparison", "Owner", "RunRecord", "Store", "config_key", "open_store", "this_process"]
