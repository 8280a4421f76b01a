"""Loaders: shapes, sources, seeds, and every way a table can be missing or wrong."""

import io
import os
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_wine as sklearn_wine

from lptml import datasets
from lptml.datasets import uci as _uci

TABLES = os.environ.get("LPTML_DATA", "")
needs_tables = pytest.mark.skipif(
    not TABLES, reason="Ionosphere and Soybean are not redistributed; set LPTML_DATA to test them"
)


@pytest.fixture
def lonely(tmp_path, monkeypatch):
    """No named folder, an empty cache and no network."""
    monkeypatch.delenv("LPTML_DATA", raising=False)
    monkeypatch.setenv("LPTML_CACHE", str(tmp_path / "cache"))

    def offline(url, timeout):
        raise OSError("no network")

    monkeypatch.setattr(_uci.urllib.request, "urlopen", offline)
    return tmp_path


@pytest.fixture
def tiny(monkeypatch):
    """A stand-in table of two rows, so that the whole path runs without the real data."""
    text = "1,0.5,a\n2,-0.0,b\n"
    X, labels = np.array([[1.0, 0.5], [2.0, 0.0]]), np.array(["a", "b"])
    table = _uci.UCITable(
        "tiny",
        "tiny",
        "nobody",
        "two rows",
        ("p", "q"),
        2,
        _uci.checksum(X, labels),
        ("https://x/a", "https://x/b"),
    )
    return table, text


@pytest.mark.parametrize(
    ("name", "shape", "classes"),
    [
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("breast_cancer", (569, 30), 2),
        ("digits", (1797, 64), 10),
        ("synthetic", (100, 2), 2),
        ("poisoned", (105, 2), 2),
        ("rotated_poisoned", (105, 2), 2),
        ("scattered_poison", (111, 2), 2),
    ],
)
def test_shapes_and_sources(name, shape, classes):
    found = datasets.load(name)
    assert found.data.shape == shape
    assert np.unique(found.target).size == classes
    assert len(found.feature_names) == shape[1]
    assert found.name == name
    assert found.source
    assert found.DESCR
    X, y = datasets.load(name, return_X_y=True)
    assert X.shape == shape
    assert y.shape == shape[:1]


@needs_tables
@pytest.mark.parametrize(
    ("name", "shape", "counts"),
    [("ionosphere", (351, 34), [126, 225]), ("soybean", (47, 35), [10, 10, 10, 17])],
)
def test_tables_of_the_named_folder(name, shape, counts, lonely):
    found = datasets.load(name, folder=TABLES)
    assert found.data.shape == shape
    assert np.bincount(found.target).tolist() == counts
    assert TABLES in found.source
    assert np.isfinite(found.data).all()


def test_unknown_name():
    with pytest.raises(ValueError, match="known are"):
        datasets.load("mnist")


def test_wine_is_scikit_learns():
    assert np.array_equal(datasets.load_wine().data, sklearn_wine().data)


def test_the_message_says_what_to_do(lonely):
    with pytest.raises(datasets.DatasetNotFound, match=r"soybean-small\.data .*LPTML_DATA") as caught:
        datasets.load_soybean()
    assert "no network" in str(caught.value)
    with pytest.raises(datasets.DatasetNotFound, match="switched off"):
        datasets.load_ionosphere(download=False)


def test_named_folder_with_and_without_header(lonely, tiny, monkeypatch):
    table, text = tiny
    (lonely / "tiny.csv").write_text("p,q,class\n" + text)
    X, labels, where = _uci.fetch(table, folder=str(lonely))
    assert where.endswith("tiny.csv")
    (lonely / "tiny.csv").rename(lonely / "kept")
    (lonely / "tiny.data").write_text(text)
    monkeypatch.setenv("LPTML_DATA", str(lonely))
    again, _, where = _uci.fetch(table)
    assert where.endswith("tiny.data")
    assert np.array_equal(X, again)
    assert labels.tolist() == ["a", "b"]


def test_a_wrong_file_in_the_named_folder_is_refused(lonely, tiny):
    table, text = tiny
    (lonely / "tiny.data").write_text(text.replace("0.5", "0.6"))
    with pytest.raises(ValueError, match="checksum"):
        _uci.fetch(table, folder=str(lonely))
    (lonely / "tiny.data").write_text("1,2\n")
    with pytest.raises(ValueError, match="expected 2 rows"):
        _uci.fetch(table, folder=str(lonely))


class Answer(io.BytesIO):
    """What urlopen returns."""


def serve(monkeypatch, answers):
    asked = []

    def urlopen(url, timeout):
        asked.append(url)
        if isinstance(answers[url], Exception):
            raise answers[url]
        return Answer(answers[url])

    monkeypatch.setattr(_uci.urllib.request, "urlopen", urlopen)
    return asked


def test_download_is_checked_cached_and_not_repeated(lonely, tiny, monkeypatch):
    table, text = tiny
    asked = serve(monkeypatch, {"https://x/a": b"<html>moved</html>", "https://x/b": text.encode()})
    X, _, where = _uci.fetch(table)
    assert where == "https://x/b"
    assert asked == ["https://x/a", "https://x/b"]
    again, _, where = _uci.fetch(table)
    assert where.startswith(str(lonely / "cache"))
    assert np.array_equal(X, again)
    assert len(asked) == 2
    assert os.listdir(lonely / "cache") == ["tiny.data"]


def test_a_damaged_cache_is_replaced(lonely, tiny, monkeypatch):
    table, text = tiny
    serve(monkeypatch, {"https://x/a": text.encode()})
    (lonely / "cache").mkdir()
    (lonely / "cache" / "tiny.data").write_text("half a tab")
    assert _uci.fetch(table)[2] == "https://x/a"
    assert _uci.fetch(table)[2].startswith(str(lonely))


def test_an_archive_is_opened(lonely, tiny, monkeypatch):
    table, text = tiny
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny.data", text)
    serve(monkeypatch, {"https://x/a": OSError("gone"), "https://x/b": packed.getvalue()})
    assert _uci.fetch(table)[0].shape == (2, 2)


@pytest.mark.parametrize("content", [b"x" * (_uci._MOST_BYTES + 1), b"PK not a zip", b"\xff\xfe"])
def test_hostile_answers_are_refused(lonely, tiny, monkeypatch, content):
    table, _ = tiny
    serve(monkeypatch, {"https://x/a": content, "https://x/b": OSError("gone")})
    with pytest.raises(datasets.DatasetNotFound):
        _uci.fetch(table)
    assert not (lonely / "cache").exists()


def test_a_read_only_cache_does_not_stop_a_download(lonely, tiny, monkeypatch):
    table, text = tiny
    (lonely / "cache").write_text("a file where the folder should be")
    serve(monkeypatch, {"https://x/a": text.encode()})
    assert _uci.fetch(table)[2] == "https://x/a"


def test_checksum_ignores_order_only():
    X, labels = np.arange(6.0).reshape(3, 2), np.array(["a", "b", "c"])
    swapped = [2, 0, 1]
    assert _uci.checksum(X, labels) == _uci.checksum(X[swapped], labels[swapped])
    assert _uci.checksum(X, labels) != _uci.checksum(X, labels[swapped])


@pytest.mark.parametrize("name", ["synthetic", "poisoned", "rotated_poisoned", "scattered_poison"])
def test_seeds(name):
    one, two, other = (datasets.load(name, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.data, two.data)
    assert not np.array_equal(one.data, other.data)


def test_the_synthetic_set_is_the_papers():
    found = datasets.make_synthetic(20000, random_state=0)
    left, right = found.data[found.target == 0], found.data[found.target == 1]
    assert np.allclose(left.mean(axis=0), [-3, 0], atol=1.0)
    assert np.allclose(right.mean(axis=0), [3, 0], atol=1.0)
    assert np.allclose(left.std(axis=0), [1, 40], rtol=0.05)
    assert not found.poisoned.any()


def test_poison_is_planted_behind_the_other_class():
    plain, found = (make(random_state=3) for make in (datasets.make_synthetic, datasets.make_poisoned))
    planted = found.data[found.poisoned]
    assert np.array_equal(found.data[~found.poisoned], plain.data)
    assert planted.shape == (5, 2)
    assert (planted[:, 0] < -90).all()
    assert (found.target[found.poisoned] == 1).all()


def test_rotation_keeps_distances_and_moves_every_axis():
    plain, turned = datasets.make_poisoned(random_state=1), datasets.make_rotated_poisoned(random_state=1)
    assert np.allclose(plain.data @ plain.data.T, turned.data @ turned.data.T)
    assert abs(np.corrcoef(turned.data[~turned.poisoned].T)[0, 1]) > 0.5


@pytest.mark.parametrize("share", [0.0, 0.02, 0.1, 0.2])
def test_scattered_share(share):
    found = datasets.make_scattered_poison(200, share=share, random_state=0)
    assert abs(found.poisoned.mean() - share) < 0.005


@pytest.mark.parametrize(
    ("make", "options"),
    [
        ("synthetic", {"n_samples": 1}),
        ("synthetic", {"stretch": 0.0}),
        ("poisoned", {"n_poison": -1}),
        ("scattered_poison", {"share": 0.6}),
    ],
)
def test_bad_options_are_named(make, options):
    with pytest.raises(ValueError, match=next(iter(options))):
        datasets.load(make, **options)


def test_both_classes_always_exist():
    assert all(np.unique(datasets.make_synthetic(2, random_state=s).target).size == 2 for s in range(20))
