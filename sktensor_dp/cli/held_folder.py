"""An output folder that one run holds, and refuses where others filled it."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from sktensor_dp.checks.display import printable
from sktensor_dp.cli.folder import EARLIER, LEDGER
from sktensor_dp.cli.manifest import MANIFEST, UNFINISHED, Manifest, digest_of

LOCK = ".run"  # file that a run locks while it writes to the folder


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Make an output folder, and hold it for one run; ValueError if others hold or filled it."""
    existed = os.path.lexists(path)
    if path.is_dir() and not (path / LOCK).exists():
        _refuse_others(path)  # adds nothing to their folder
    if existed and not path.is_dir():
        what = "a file" if path.exists() else "a link to nothing"
        raise ValueError(f"--output names a folder, and {path} is {what}. Nothing was spent.")
    path.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path, prefix=".probe-"):
        pass  # OSError where nothing can be written
    if not (ignored := path / ".gitignore").exists():
        ignored.write_text("*\n", encoding="utf-8")
    is_own = False  # made and held by this run
    try:
        # The lock ends with its process, however that ends.
        with closing(sqlite3.connect(path / LOCK, timeout=0, isolation_level=None)) as lock:
            with suppress(sqlite3.OperationalError):
                lock.execute("BEGIN EXCLUSIVE")
            if not lock.in_transaction:
                raise ValueError(
                    f"Another run is writing to {path}: wait until it has ended, or name another "
                    "folder, whose budget is its own. Nothing was spent."
                )
            is_own = not existed
            _refuse_others(path)
            try:
                yield
            finally:
                if (path / LEDGER).is_file():
                    _remove_journal(path / LEDGER)
    finally:
        # A refused run leaves no folder that it made.
        if is_own and {one.name for one in path.iterdir()} == {LOCK, ignored.name}:
            shutil.rmtree(path)


def _remove_journal(ledger: Path) -> None:
    """Remove the empty journal that SQLite leaves beside a ledger."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(ledger)) as open_ledger:
        # Changing the mode under a lock deletes the journal, and never one in use. Where the file
        # is no ledger, the run has said so.
        open_ledger.executescript("PRAGMA journal_mode = TRUNCATE; PRAGMA journal_mode = DELETE")


def _refuse_others(folder: Path) -> None:
    """Raise ValueError for files that the command did not make, or that were changed since."""
    made = Manifest.of(folder)
    own = {LEDGER, f"{LEDGER}-journal", *made.private, *([MANIFEST] if made.names else [])}

    def is_own(path: Path) -> bool:
        """True for what runs of this command wrote into the folder, unchanged since."""
        if path.name.startswith(".") or (EARLIER.fullmatch(path.name) and path.is_dir()):
            return True
        # This command makes no links, but a ledger may be one.
        if path.name != LEDGER and (path.is_symlink() or not path.is_file()):
            return False
        digest = made.protected.get(path.name)
        if path.name in own or digest == UNFINISHED:
            return True
        return digest is not None and digest == digest_of(path)

    others = [printable(path.name) for path in sorted(folder.iterdir()) if not is_own(path)]
    if others:
        more = f" and {len(others) - 3} more" if len(others) > 3 else ""
        raise ValueError(
            f"{folder} holds files that the command did not make, or that were changed "
            f"since: {', '.join(others[:3])}{more}. Name another --output folder, or move "
            "them away. Nothing was spent."
        )
