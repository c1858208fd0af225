"""MovieLens 100K, downloaded if necessary: 100,000 ratings of 1682 films by 943 users.

Terms of the GroupLens Research Project: for research; not to be redistributed, or used
commercially, without separate permission. Publications cite F. M. Harper and J. A. Konstan, "The
MovieLens datasets: history and context", ACM Transactions on Interactive Intelligent Systems 5(4),
2015.
"""

import hashlib
import io
import urllib.request
import zipfile
import zlib
from http.client import HTTPException
from pathlib import Path

from sklearn.datasets import get_data_home

ARCHIVE, FOLDER = "https://files.grouplens.org/datasets/movielens/ml-100k.zip", "ml-100k"
# SHA-256 of the two files that are read; other files of the archive are not written.
CHECKSUMS = {
    "ua.base": "67b5bcdb380c29f85d56a012ecd88612ae020f30a6730d117a334ee8203b91f2",
    "ua.test": "d0497e202417720f57a184ec8c66be2d1afa4ff41bb53787c57b28d6bf79bc42",
}


def ratings_folder(data_home: Path | None = None) -> Path:
    """Folder of ``ua.base`` and ``ua.test``; OSError if they are not to be had, or damaged."""
    folder = Path(get_data_home(None if data_home is None else str(data_home))) / FOLDER
    if not all((folder / name).exists() for name in CHECKSUMS):
        contents = downloaded(folder)
        check(contents, "as downloaded")
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in contents.items():
            (folder / name).write_bytes(content)
    read = {name: (folder / name).read_bytes() for name in CHECKSUMS}
    check(read, f"in {folder}; remove it to have it downloaded anew")
    return folder


def downloaded(folder: Path) -> dict[str, bytes]:
    """The files that are read, from the archive; OSError where it cannot be had."""
    try:
        with urllib.request.urlopen(ARCHIVE, timeout=60.0) as response:
            archive = response.read()
        with zipfile.ZipFile(io.BytesIO(archive)) as members:
            return {name: members.read(f"{FOLDER}/{name}") for name in CHECKSUMS}
    except (OSError, HTTPException) as error:
        raise OSError(
            f"MovieLens 100K could not be fetched from {ARCHIVE} ({type(error).__name__}). "
            f"Without a network, put {' and '.join(CHECKSUMS)} into {folder}."
        ) from error
    except (zipfile.BadZipFile, zlib.error, KeyError) as error:
        raise OSError(
            f"What {ARCHIVE} sent is not the archive of MovieLens 100K ({type(error).__name__})."
        ) from error


def check(contents: dict[str, bytes], where: str) -> None:
    """Raise OSError if the checksum of a file is not the known one."""
    for name, content in contents.items():
        if hashlib.sha256(content).hexdigest() != CHECKSUMS[name]:
            raise OSError(
                f"{name} {where}: it does not have the known SHA-256 checksum, so that it is "
                "damaged or another version."
            )
