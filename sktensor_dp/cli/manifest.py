"""List of the files that a run made, and of the settings that it was asked for."""

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Lists protected files with their SHA-256, then those of raw data.
MANIFEST = "manifest.json"
STATEMENT = "statement.json"
# Digest in the list of a file that is still being written.
UNFINISHED = ""


@dataclass
class Manifest:
    """Files of a run and its settings.

    Attributes
    ----------
    protected : dict of str to str
        SHA-256 of the files that may be shown, by their names.
    private : list of str
        Names of the files with raw data.
    asked : dict of str to str
        Settings that the run was asked for, in words.
    epsilon : float
        Epsilon for all steps of the run.
    warnings, doubts : list of str
        What its page says of weak protection, and of its results.
    finished : bool
        True if the run wrote all its files.
    """

    protected: dict[str, str] = field(default_factory=dict)
    private: list[str] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    epsilon: float = 0.0
    warnings: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    finished: bool = False

    @classmethod
    def of(cls, path: Path) -> "Manifest":
        """Manifest in a folder; an empty one if there is none, or a file of another kind."""
        try:
            content = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
            protected, private = dict(content["protected"]), list(content["private"])
            asked, epsilon = dict(content["asked"]), float(content["epsilon"])
            warnings, doubts = (list(map(str, content[one])) for one in ("warnings", "doubts"))
            finished = bool(content["finished"])
            made = cls(protected, private, asked, epsilon, warnings, doubts, finished)
        except (OSError, ValueError, TypeError, KeyError):
            return cls()
        are_here = all(Path(str(name)).name == name for name in made.names)
        return made if are_here else cls()

    @property
    def names(self) -> list[str]:
        """Names of all files."""
        return [*self.protected, *self.private]

    def write(self, path: Path) -> None:
        """Write the list into a folder."""
        content = asdict(self) | {"epsilon": str(self.epsilon)}
        write_whole(path / MANIFEST, json.dumps(content, indent=2) + "\n")


def write_whole(path: Path, text: str) -> None:
    """Write a file as a whole or not at all, whenever the process ends."""
    # One name, unlike that of models: what a killed run left is replaced by the next one.
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_text(text, encoding="utf-8")
    os.replace(unfinished, path)


def changed_files(path: Path) -> tuple[int, list[str]]:
    """Number of files with a checksum in a folder's manifest; those that differ, or are missing."""
    protected = Manifest.of(path).protected
    if not protected and (path / MANIFEST).exists():
        return 0, [MANIFEST]
    found = {name: (path / name).is_file() and digest_of(path / name) for name in protected}
    return len(found), [name for name, digest in protected.items() if found[name] != digest]


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
