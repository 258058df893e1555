"""Pictures are written, deterministic, in two colours and without overlap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from byzmesh.errors import ConfigError
from byzmesh.networks import Network, network
from byzmesh.networks.drawing import HONEST, LYING, _apart, _node_size, _scaled, positions


def count(picture: np.ndarray, colour: str) -> int:
    """Number of pixels of exactly this colour."""
    wanted = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)])
    return int(((picture[..., :3] * 255).round() == wanted).all(axis=-1).sum())


def test_a_png_shows_honest_blue_and_lying_red(tmp_path: Path) -> None:
    picture = imread(network("paper/two-castle").draw(tmp_path / "a.png"))
    blue, red = count(picture, HONEST), count(picture, LYING)
    # 10 circles against 2 squares of nearly the same size
    assert red > 1000
    assert 3 < blue / red < 7
    assert count(imread(network("two-castle", k=6).draw(tmp_path / "b.png")), LYING) == 0


@pytest.mark.parametrize(("kind", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_same_network_gives_the_same_file(tmp_path: Path, kind: str, start: bytes) -> None:
    net = network("erdos-renyi", n=20, p=0.15, byzantine=3)
    first = net.draw(tmp_path / f"a.{kind}").read_bytes()
    assert first.startswith(start)
    assert len(first) > 5000
    assert net.draw(tmp_path / f"b.{kind}").read_bytes() == first


def test_labels_are_in_the_svg(tmp_path: Path) -> None:
    text = network("paper/octopus").draw(tmp_path / "a.svg").read_text()
    assert "<!-- 11 -->" in text
    assert "lying" in text


@pytest.mark.parametrize(
    "net",
    [
        network("paper/two-castle"),
        network("paper/er-20-b10"),
        network("erdos-renyi", n=30, p=0.15),
        network("random-geometric", n=40, radius=0.3),
        network("torus", rows=5, columns=7),
        network("lollipop", clique=12, tail=8),
        network("barabasi-albert", n=60),
        Network.from_edges([(0, 1)], n=5),
    ],
    ids=lambda net: str(net.name),
)
def test_nodes_do_not_overlap_and_stay_inside(net: Network) -> None:
    spots, width, height = _scaled(_apart(positions(net)), net.n)
    radius = _node_size(spots) / 72 / 2
    gap = np.linalg.norm(spots[:, None] - spots[None], axis=2) + np.eye(net.n) * 1e9
    assert gap.min() > 2 * radius
    assert radius * 72 * 2 > 8
    assert (spots - radius > 0).all() and (spots[:, 0] + radius < width).all() and (spots[:, 1] + radius < height).all()


def test_single_node_and_long_chain(tmp_path: Path) -> None:
    assert Network.from_edges([], n=1).draw(tmp_path / "a.png").stat().st_size > 1000
    assert network("chain", n=300).draw(tmp_path / "b.png").stat().st_size > 1000


def test_unknown_kinds_and_unwritable_paths(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"must be .png, .svg or .pdf, got '.gif'"):
        network("ring", n=3).draw(tmp_path / "a.gif")
    with pytest.raises(ConfigError, match="cannot be written"):
        network("ring", n=3).draw(tmp_path / "absent" / "a.png")


def test_drawing_leaves_pyplot_alone(tmp_path: Path) -> None:
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    network("ring", n=3).draw(tmp_path / "a.png")
    assert pyplot.get_fignums() == before
