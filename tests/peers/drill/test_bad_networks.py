"""5% loss and 50 ms of delay: training completes, and nobody is shut out."""

from __future__ import annotations

from pathlib import Path

from byzmesh.peers.drill.drill import Drill, Nursery
from byzmesh.peers.network_file import network_file, save_network
from tests.peers.drill.lossy import Proxy, netem_namespace
from tests.peers.networks import free_ports, make_network

ROUNDS = 15


def test_loss_and_delay_are_survived(tmp_path: Path, nursery: Nursery) -> None:
    file = make_network(
        tmp_path,
        5,
        topology={"name": "ring", "n": 5},
        rule="weimean",
        problem={"name": "quadratic", "dimension": 5000, "targets": "normal"},
        rounds=ROUNDS,
        evaluate_every=5,
    )
    with netem_namespace() as namespace:
        if namespace is not None:
            born = Nursery(["ip", "netns", "exec", namespace])
            try:
                check(Drill(tmp_path / "network.yaml", tmp_path / "out", nursery=born), {})
            finally:
                born.close()
            return
    # every peer has its own file: it listens at its true port and meets the others through the proxy
    true = [int(entry.address.rpartition(":")[2]) for entry in file.peers]
    seen = free_ports(5)
    paths = {}
    for me in range(5):
        content = file.model_dump(mode="json")
        for peer in range(5):
            if peer != me:
                content["peers"][peer]["address"] = f"127.0.0.1:{seen[peer]}"
        paths[me] = str(save_network(network_file(content), tmp_path / f"network{me}.yaml"))
    proxy = Proxy(dict(zip(seen, true)))
    try:
        check(Drill(tmp_path / "network.yaml", tmp_path / "out", nursery=nursery), paths)
    finally:
        proxy.close()


def check(drill: Drill, paths: dict[int, str]) -> None:
    with drill:
        drill.nursery.warm(drill.path)
        for peer in drill.honest:
            drill.start_peer(peer, **({"network": paths[peer]} if paths else {}))
        assert drill.wait(90)
        status = drill.status()
    assert all(said["round"] == ROUNDS and said["refused"] == 0 for said in status.values())
    assert sum(said["silent"] for said in status.values()) == 0
