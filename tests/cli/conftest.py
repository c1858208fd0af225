"""The command as a person runs it, in an empty folder."""

import functools
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import PLURAL_OF_ONE, Answer, Command, kept_from_the_officer, write_posts

from sktensor_dp import (
    PrivateCountVectorizer,
    PrivateCPCompletion,
    PrivateGaussianMixture,
    PrivateSpectralLDA,
)
from sktensor_dp.cli import main

ESTIMATORS = (
    PrivateCountVectorizer, PrivateCPCompletion, PrivateGaussianMixture, PrivateSpectralLDA,
)  # fmt: skip


def made_once(forecast: Callable[..., Any]) -> Callable[..., Any]:
    """A forecast from public numbers: a run asks for sixty, and most tests for the same."""
    made: dict[bytes, Any] = {}

    @functools.wraps(forecast)
    def found(model: Any, *numbers: Any, **named: Any) -> Any:
        asked = pickle.dumps((model.get_params(deep=False), numbers, named))
        if asked not in made:
            made[asked] = forecast(model, *numbers, **named)
        return made[asked]

    return found


FORECASTS = {one: made_once(one.forecast) for one in ESTIMATORS}


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


@pytest.fixture(autouse=True)
def _forecasts(monkeypatch: pytest.MonkeyPatch) -> None:
    for one, forecast in FORECASTS.items():
        monkeypatch.setattr(one, "forecast", forecast)


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
        assert not kept_from_the_officer(answer)
        return answer

    return run


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return write_posts(tmp_path / "posts.csv")
