"""The SQLite store of runs: no run is computed twice, lost, or mistaken for another."""

from byzmesh.store.keys import config_key
from byzmesh.store.records import Comparison, Owner, RunRecord, this_process
from byzmesh.store.store import Store, open_store

__all__ = ["Comparison", "Owner", "RunRecord", "Store", "config_key", "open_store", "this_process"]
