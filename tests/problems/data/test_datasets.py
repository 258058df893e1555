"""Data sets: the embedded one, local folders, the user's files, the cache and what happens when it is broken."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from byzmesh.errors import ConfigError, DataError
from byzmesh.problems import dataset, problem
from byzmesh.problems.data.cache import cache_dir, cached
from byzmesh.problems.data.datasets import _SOURCES, nonzero
from byzmesh.problems.data.idx import FILES, read_idx
from tests.problems.linear.reference import bound


def write_idx(path: Path, array: np.ndarray, packed: bool = True) -> None:
    header = bytes([0, 0, 8, array.ndim]) + b"".join(int(size).to_bytes(4, "big") for size in array.shape)
    data = header + array.astype(np.uint8).tobytes()
    path.write_bytes(gzip.compress(data) if packed else data)


def write_images(folder: Path, packed: bool = True) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(1)
    arrays = {
        "train_x": generator.integers(0, 256, (40, 28, 28)),
        "train_y": np.arange(40) % 10,
        "test_x": generator.integers(0, 256, (10, 28, 28)),
        "test_y": np.arange(10),
    }
    folder.mkdir(parents=True)
    for name, array in arrays.items():
        write_idx(folder / (FILES[name] + (".gz" if packed else "")), array, packed)
    return arrays


def test_embedded_mnist_is_whole(empty_cache: Path) -> None:
    for attempt in ("decoded", "cached"):
        data = dataset("MNIST")
        assert data.train_x.dtype == np.uint8, attempt
        assert np.bincount(data.train_y).tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
        assert data.train_x.mean() / 255 == pytest.approx(0.1307, abs=1e-4)
        assert data.scale * 255 + data.offset == 1.0
        row = np.zeros(784, np.uint8)
        begin, end = data.nonzero["train_start"][7:9]
        row[data.nonzero["train_column"][begin:end]] = data.nonzero["train_value"][begin:end]
        np.testing.assert_array_equal(row, data.train_x[7])
        assert len(data.nonzero["test_start"]) == 10_001
    assert (empty_cache / "mnist-2" / "train_x.npy").is_file()
    assert not [path for path in empty_cache.iterdir() if path.name.startswith(".")]


def test_broken_cache_is_mended(empty_cache: Path) -> None:
    built = []

    def build() -> dict[str, np.ndarray]:
        built.append(1)
        return {"a": np.arange(1000), "b": np.ones(3)}

    for _ in range(2):
        arrays = cached("thing", ("a", "b"), build)
    assert len(built) == 1
    assert arrays["a"][999] == 999
    damage: list[Any] = [
        lambda path: path.write_bytes(path.read_bytes()[:300]),
        lambda path: path.write_bytes(b"nonsense"),
        lambda path: path.unlink(),
        lambda path: path.write_bytes(b""),
    ]
    for count, harm in enumerate(damage):
        harm(empty_cache / "thing" / "a.npy")
        np.testing.assert_array_equal(cached("thing", ("a", "b"), build)["a"], np.arange(1000))
        assert len(built) == 2 + count
        cached("thing", ("a", "b"), build)
        assert len(built) == 2 + count


def test_cache_that_cannot_be_written_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("not a folder")
    monkeypatch.setenv("BYZMESH_CACHE", str(blocker / "cache"))
    np.testing.assert_array_equal(cached("thing", ("a",), lambda: {"a": np.arange(4)})["a"], np.arange(4))
    assert dataset("mnist").nonzero["train_start"][-1] == 8994156


def test_cached_arrays_are_private(empty_cache: Path) -> None:
    """A write to a mapped array stays in this process."""
    first = cached("thing", ("a",), lambda: {"a": np.zeros(5)})
    first["a"][0] = 7
    assert cached("thing", ("a",), lambda: {"a": np.ones(5)})["a"][0] == 0


def test_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BYZMESH_CACHE", str(tmp_path))
    assert cache_dir() == tmp_path
    monkeypatch.delenv("BYZMESH_CACHE")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "byzmesh"


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("inside", [True, False])
def test_fashion_mnist_from_a_folder(
    packed: bool, inside: bool, tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrays = write_images(tmp_path / "data" / "fashion-mnist" if inside else tmp_path / "data", packed)
    for way in ("option", "environment"):
        if way == "environment":
            monkeypatch.setenv("BYZMESH_DATA", str(tmp_path / "data"))
        data = dataset("fashion-mnist", str(tmp_path / "data") if way == "option" else None)
        np.testing.assert_array_equal(data.train_x, arrays["train_x"].reshape(40, 784))
        np.testing.assert_array_equal(data.test_y, arrays["test_y"])
        assert data.classes == 10
        assert data.nonzero == {}


def test_fashion_mnist_where_debian_puts_it(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = write_images(tmp_path / "fashion-mnist", True)
    monkeypatch.setattr("byzmesh.problems.data.datasets._SYSTEM", tmp_path)
    data = dataset("fashion-mnist")
    np.testing.assert_array_equal(data.train_x, arrays["train_x"].reshape(40, 784))
    assert data.shape == (28, 28)


def test_the_real_fashion_mnist(empty_cache: Path) -> None:
    """Debian's package dataset-fashion-mnist, which scripts/test installs."""
    data = dataset("fashion-mnist")
    assert (data.train_x.shape, data.test_x.shape, data.shape) == ((60000, 784), (10000, 784), (28, 28))
    assert np.bincount(data.train_y).tolist() == [6000] * 10
    assert (empty_cache / "fashion-mnist-2" / "train_x.npy").is_file()


def test_cifar_from_a_folder(tmp_path: Path, empty_cache: Path) -> None:
    generator = np.random.default_rng(2)
    records = generator.integers(0, 256, (60, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(60) % 10
    folder = tmp_path / "cifar-10-batches-bin"
    folder.mkdir()
    for number in range(5):
        (folder / f"data_batch_{number + 1}.bin").write_bytes(records[10 * number : 10 * number + 10].tobytes())
    (folder / "test_batch.bin").write_bytes(records[50:].tobytes())
    data = dataset("CIFAR-10", str(tmp_path))
    np.testing.assert_array_equal(data.train_x, records[:50, 1:])
    assert data.shape == (3, 32, 32)
    np.testing.assert_array_equal(data.train_y, records[:50, 0])
    np.testing.assert_array_equal(data.test_x, records[50:, 1:])
    task = bound("softmax", {"dataset": "cifar-10", "data_dir": str(tmp_path)}, workers=2)
    assert task.dimension == 3073 * 10
    assert np.isfinite(task.gradients(task.initial("normal"), 0)).all()
    (folder / "test_batch.bin").write_bytes(b"x" * 100)
    with pytest.raises(DataError, match="damaged: 100 bytes are not whole records"):
        dataset("cifar-10", str(tmp_path))
    (folder / "test_batch.bin").write_bytes(b"\xff" * 3073)
    with pytest.raises(DataError, match="label above 9"):
        dataset("cifar-10", str(tmp_path))
    (folder / "test_batch.bin").unlink()
    with pytest.raises(DataError, match="no file test_batch"):
        dataset("cifar-10", str(tmp_path))


def test_download_checks_and_unpacks(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real downloader against a folder of files instead of the network."""
    arrays = write_images(tmp_path / "server")
    fetched = []

    def fetch(url: str, output_file: str, downloader: Any) -> None:
        fetched.append(url)
        Path(output_file).write_bytes((tmp_path / "server" / url.rsplit("/", 1)[1]).read_bytes())

    monkeypatch.setattr("byzmesh.problems.data.datasets._SYSTEM", tmp_path / "system")
    monkeypatch.setattr("pooch.core.choose_downloader", lambda url, progressbar=False: fetch)
    with pytest.raises(DataError, match=r"cannot download fashion-mnist: .*give it as data_dir"):
        dataset("fashion-mnist")
    true = {path.name: "md5:" + hashlib.md5(path.read_bytes()).hexdigest() for path in (tmp_path / "server").iterdir()}
    for file, checksum in true.items():
        monkeypatch.setitem(_SOURCES["fashion-mnist"].files, file, checksum)
    fetched.clear()
    for _ in range(2):
        np.testing.assert_array_equal(dataset("fashion-mnist").train_y, arrays["train_y"])
    assert len(fetched) == 4


def test_a_failed_download_is_one_line(tmp_path: Path, empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(url: str, output_file: str, downloader: Any) -> None:
        raise OSError("no route\nto host")

    monkeypatch.setattr("byzmesh.problems.data.datasets._SYSTEM", tmp_path / "system")
    monkeypatch.setattr("pooch.core.choose_downloader", lambda url, progressbar=False: refuse)
    for name in ("fashion-mnist", "cifar-10"):
        with pytest.raises(DataError, match=f"cannot download {name}: no route; .*put") as caught:
            dataset(name)
        assert "\n" not in str(caught.value)


def test_damaged_idx_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "file.gz"
    whole = gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 200]) + os.urandom(200))
    for data, words in (
        (whole[:-20], "cannot read"),
        (whole[:30] + b"zzzz" + whole[34:], "cannot read"),
        (b"hello", "not an IDX file"),
        (b"", "not an IDX file"),
        (bytes([0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 3, 1]), "cut short"),
    ):
        path.write_bytes(data)
        with pytest.raises(DataError, match=words):
            read_idx(path)
    with pytest.raises(DataError, match="cannot read"):
        read_idx(tmp_path / "missing")
    with pytest.raises(DataError, match="has no file train-images"):
        dataset("fashion-mnist", str(tmp_path))
    with pytest.raises(DataError, match="not a folder"):
        dataset("fashion-mnist", str(tmp_path / "nowhere"))


def test_users_npz_and_csv(tmp_path: Path, small_file: Path) -> None:
    data = dataset(str(small_file))
    assert (data.train_x.shape, data.test_x.shape, data.classes) == ((60, 9), (20, 9), 3)
    assert (data.scale, data.offset) == (1.0, 0.0)
    table = np.column_stack([np.arange(20.0), np.arange(20.0) ** 2, np.arange(20) % 2])
    np.savetxt(tmp_path / "table.csv", table, delimiter=",", header="a,b,label", comments="")
    held = dataset("table.csv", str(tmp_path))
    assert held.classes == 2
    np.testing.assert_array_equal(held.test_x[:, 0], [0, 5, 10, 15])
    assert len(held.train_x) == 16
    np.savetxt(tmp_path / "bare.csv", table + 0.25, delimiter=",")
    assert dataset(str(tmp_path / "bare.csv")).classes == 0
    np.savez(tmp_path / "prices.npz", features=table, labels=np.arange(20) * 1000)
    assert dataset(str(tmp_path / "prices.npz")).classes == 0


def test_numeric_targets_train_least_squares_only(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    np.savez(tmp_path / "line.npz", features=x, labels=x @ [1.0, -2.0, 0.5] + 3.0)
    options = {"dataset": str(tmp_path / "line.npz"), "batch": 10}
    task = bound("least-squares", options, workers=2, liars=1, dtype="float64")
    assert task.describe().tolist() == [[20], [20], [20]]
    models = task.initial()
    for k in range(2000):
        models[:2] -= 0.1 * task.gradients(models[:2], k)
    np.testing.assert_allclose(models[:2], [[1.0, -2.0, 0.5, 3.0]] * 2, atol=1e-3)
    low, high = task.target.min(), task.target.max()
    picks, labels = task.batches(0, np.arange(3))
    np.testing.assert_allclose(labels[2], low + high - task.target[picks[2]])
    for name in ("softmax", "logistic"):
        with pytest.raises(ConfigError, match="class"):
            bound(name, options, workers=2)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"features": np.ones((4, 2))}, "it needs features and labels"),
        ({"features": np.ones((4, 2)), "labels": np.ones(3, int)}, "one row of features per label"),
        ({"features": np.ones(4), "labels": np.ones(4, int)}, "one row of features per label"),
        ({"features": np.full((9, 2), np.nan), "labels": np.ones(9, int)}, "NaN or infinity"),
        ({"features": np.ones((9, 2)), "labels": np.full(9, np.inf)}, "NaN or infinity"),
        ({"features": np.ones((9, 2)), "labels": np.arange(9) - 3}, "number the classes from 0"),
        ({"features": np.full((9, 2), "a"), "labels": np.ones(9, int)}, "must be numbers"),
        ({"features": np.ones((0, 2)), "labels": np.ones(0, int)}, "no train samples"),
        ({"features": np.ones((1, 2)), "labels": np.ones(1, int)}, "one sample is not enough"),
        ({"features": np.ones((5, 2)), "labels": np.ones(5, int), "test_labels": np.ones(5)}, "give both or none"),
        (
            {"train_x": np.ones((5, 2)), "train_y": np.ones(5), "test_x": np.ones((5, 3)), "test_y": np.ones(5)},
            "2 features to train on, 3 to test",
        ),
    ],
)
def test_users_mistakes_are_named(arrays: dict[str, Any], words: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", **arrays)
    with pytest.raises(DataError, match=words) as caught:
        dataset(str(tmp_path / "bad.npz"))
    assert "bad.npz" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "no.npz").write_bytes(b"PK\x03\x04 not a zip")
    (tmp_path / "no.csv").write_text("1,2,3\n4,five,6\n")
    (tmp_path / "one.csv").write_text("1\n2\n")
    np.savez(tmp_path / "objects.npz", features=np.array([object()]), labels=np.ones(1))
    for name, words in (
        ("no.npz", "cannot read"),
        ("objects.npz", "cannot read"),
        ("no.csv", "cannot read"),
        ("one.csv", "has 1 column"),
        ("missing.csv", "no data file"),
    ):
        with pytest.raises(DataError, match=words):
            dataset(str(tmp_path / name))
    with pytest.raises(ConfigError, match="unknown data set 'mnits': did you mean 'mnist'"):
        dataset("mnits")
    with pytest.raises(ConfigError, match=r"dataset must be a name or the path of a .* file, got int 3"):
        dataset(3)  # type: ignore[arg-type]


def test_full_images_are_not_kept_as_nonzero_pixels() -> None:
    full = np.full((5, 4), 9, np.uint8)
    assert all(len(array) == 0 for array in nonzero(full, full).values())
    half = full.copy()
    half[:, :3] = 0
    held = nonzero(half, full)
    assert held["train_start"].tolist() == [0, 1, 2, 3, 4, 5]
    assert held["test_column"].tolist() == [0, 1, 2, 3] * 5


@pytest.mark.parametrize("header", ["", "size,weight,kind\n"])
def test_labels_may_be_words(tmp_path: Path, header: str) -> None:
    path = tmp_path / "animals.csv"
    path.write_text(header + "1.5,2, newt\n3,4,cat\n5,6,newt\n7,8,emu\n9,1,cat\n2,2,cat\n")
    animals = dataset(str(path))
    assert (animals.classes, animals.class_names) == (3, ("cat", "emu", "newt"))
    assert (animals.test_y.tolist(), animals.train_y.tolist()) == ([2, 0], [0, 2, 1, 0])
    assert animals.test_x.tolist() == [[1.5, 2.0], [2.0, 2.0]]
    assert "'emu'" in repr(animals)
    task = problem("softmax", dataset=str(path), batch=1).bind(workers=2)
    task.draw(tmp_path / "who.svg")
    assert (tmp_path / "who.svg").exists()
    np.savez(tmp_path / "animals.npz", features=np.ones((6, 2)), labels=np.array(["b", "a", "b", "a", "b", "a"]))
    assert dataset(str(tmp_path / "animals.npz")).class_names == ("a", "b")


def test_a_missing_word_is_named(tmp_path: Path) -> None:
    path = tmp_path / "animals.csv"
    path.write_text("1,2,cat\n3,4,\n5,6,emu\n")
    with pytest.raises(DataError, match="sample 2 has no label"):
        dataset(str(path))
