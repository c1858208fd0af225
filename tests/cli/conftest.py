"""The command as a person runs it, in an empty folder."""

from pathlib import Path
from typing import Any

import pytest
from commands import PLURAL_OF_ONE, Answer, Command, write_posts

from sktensor_dp.cli import main


@pytest.fixture
def drawn() -> None:
    """Tests that ask for this draw pictures as they are."""


@pytest.fixture(autouse=True)
def _words_of_pictures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the words of a picture alone: to draw it takes as long as a small fit."""

    def write(figure: Any, path: Path) -> None:
        from matplotlib.text import Text

        lines = [line for text in figure.findobj(Text) for line in text.get_text().splitlines()]
        path.write_text("".join(f"<!-- {line} -->\n" for line in lines), encoding="utf-8")

    if "drawn" not in request.fixturenames:
        monkeypatch.setattr("sktensor_dp.cli.execution.save_svg", write)


@pytest.fixture
def command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Command:
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object, status: int = 0) -> Answer:
        try:
            ended = main([str(argument) for argument in arguments])
        except SystemExit as stop:  # argparse leaves by itself
            ended = int(stop.code or 0)
        answer = Answer(*capsys.readouterr())
        assert ended == status, answer.err
        assert not PLURAL_OF_ONE.search(answer.out + answer.err)
        return answer

    return run


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return write_posts(tmp_path / "posts.csv")
