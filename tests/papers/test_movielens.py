"""The ratings of MovieLens 100K, from an archive made here: nothing is fetched."""

import hashlib
import zipfile

import pytest

FILES = {"ua.base": b"1\t2\t4\t5\n", "ua.test": b"2\t1\t1\t5\n"}


@pytest.fixture
def served(script, tmp_path, monkeypatch):
    """The script, and a function that writes the archive."""
    path, found = tmp_path / "served" / "ml-100k.zip", script("movielens")
    path.parent.mkdir()

    def write(**files):
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in files.items():
                archive.writestr(f"ml-100k/{name}", content)

    checksums = {name: hashlib.sha256(content).hexdigest() for name, content in FILES.items()}
    monkeypatch.setattr(found, "ARCHIVE", path.as_uri())
    monkeypatch.setattr(found, "CHECKSUMS", checksums)
    return found, write, path


def test_ratings_are_fetched_checked_and_kept(served, tmp_path):
    movielens, write, path = served
    home = tmp_path / "home"
    write(**FILES, **{"../../escaped": b"no"})
    folder = movielens.ratings_folder(home)
    # Only the two files that are read leave the archive.
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == FILES
    assert not list(tmp_path.rglob("escaped"))
    path.unlink()
    assert movielens.ratings_folder(home) == folder
    (folder / "ua.base").write_bytes(b"1")
    with pytest.raises(OSError, match=r"ua\.base in .*; remove it .*SHA-256"):
        movielens.ratings_folder(home)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({**FILES, "ua.test": b""}, r"ua\.test as downloaded: .*SHA-256"),
        ({"u.data": b""}, "not the archive of MovieLens 100K"),
        (None, r"could not be fetched .*put ua\.base and ua\.test into"),
    ],
)
def test_what_is_no_archive_is_refused_and_leaves_nothing(served, tmp_path, files, message):
    movielens, write, _ = served
    if files:
        write(**files)
    with pytest.raises(OSError, match=message):
        movielens.ratings_folder(tmp_path / "home")
    assert not list((tmp_path / "home").iterdir())
