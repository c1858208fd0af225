"""The loader of MovieLens 100K, on an archive made here: nothing is fetched."""

import hashlib
import zipfile

import numpy as np
import pytest

from sktensor_dp.datasets import fetch_movielens_100k, public

DAY = 86_400
BASE = f"1\t2\t4\t{5 * DAY + 3}\n943\t1682\t5\t{7 * DAY + 2}\n".encode()
TEST = f"2\t1\t1\t{5 * DAY + 2}\n".encode()


@pytest.fixture
def archive(tmp_path, monkeypatch):
    path = tmp_path / "served" / "ml-100k.zip"
    path.parent.mkdir()

    def write(base=BASE, test=TEST, **others):
        with zipfile.ZipFile(path, "w") as file:
            for name, content in {"ua.base": base, "ua.test": test, **others}.items():
                file.writestr(f"ml-100k/{name}", content)

    write()
    checksums = {
        name: hashlib.sha256(content).hexdigest()
        for name, content in {"ua.base": BASE, "ua.test": TEST}.items()
    }
    monkeypatch.setattr(public, "ARCHIVE", path.as_uri())
    monkeypatch.setattr(public, "CHECKSUMS", checksums)
    write.path = path
    return write


def test_ratings_are_fetched_checked_and_kept(archive, tmp_path):
    archive(**{"../../escaped": b"no"})
    home = tmp_path / "home"
    ratings = fetch_movielens_100k(home)
    # Days are counted from the first rating of both parts: that of ua.test, 1 s earlier.
    np.testing.assert_array_equal(ratings.data, [[0, 1, 0], [942, 1681, 2], [1, 0, 0]])
    np.testing.assert_array_equal(ratings.target, [4.0, 5.0, 1.0])
    np.testing.assert_array_equal(ratings.train.data, ratings.data[:2])
    np.testing.assert_array_equal(ratings.test.target, [1.0])
    assert ratings.shape == (943, 1682, 3)
    assert ratings.feature_names == ["user", "item", "day"]
    assert "not to be redistributed" in ratings.DESCR
    # Only the two files that are read leave the archive.
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "home", "ml-100k", "ml-100k.zip", "served", "ua.base", "ua.test",
    ]  # fmt: skip
    archive.path.unlink()
    np.testing.assert_array_equal(fetch_movielens_100k(home).data, ratings.data)
    assert ratings.filenames["ua.base"].read_bytes() == BASE


def test_another_archive_is_refused_and_leaves_nothing(archive, tmp_path):
    archive(test=TEST.replace(b"\t1\t", b"\t2\t", 1))
    with pytest.raises(OSError, match=r"ua\.test as downloaded: .*SHA-256"):
        fetch_movielens_100k(tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())


def test_damaged_file_on_disk_is_refused(archive, tmp_path):
    fetch_movielens_100k(tmp_path)
    (tmp_path / "ml-100k" / "ua.base").write_bytes(BASE + b"1\t1\t1\t1\n")
    with pytest.raises(OSError, match=r"ua\.base in data_home; remove it .*SHA-256"):
        fetch_movielens_100k(tmp_path)


def test_without_a_network_the_error_says_what_to_do(archive, tmp_path):
    archive.path.unlink()
    with pytest.raises(OSError, match=r"could not be fetched .*put ua\.base and ua\.test into"):
        fetch_movielens_100k(tmp_path)


def test_something_else_in_place_of_the_archive(archive, tmp_path):
    archive.path.write_bytes(b"<html>moved</html>")
    with pytest.raises(OSError, match="not the archive of MovieLens 100K"):
        fetch_movielens_100k(tmp_path)
    with zipfile.ZipFile(archive.path, "w") as file:
        file.writestr("ml-100k/u.data", BASE)
    with pytest.raises(OSError, match="not the archive of MovieLens 100K"):
        fetch_movielens_100k(tmp_path)
