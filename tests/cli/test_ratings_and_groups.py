"""``sktensor-dp ratings`` and ``groups``, and forecasts from public numbers alone."""

import json
import os
import re
import shutil
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from commands import Answer, stated, table

import sktensor_dp
from sktensor_dp import (
    BudgetAccountant,
    PrivateCPCompletion,
    PrivateGaussianMixture,
)
from sktensor_dp.cli.arguments import parse
from sktensor_dp.cli.execution import EXACTLY, KINDS_OF_RUN
from sktensor_dp.cli.folder import LEDGER
from sktensor_dp.cli.groups import CENTRES, CLAMPED, ENDS, INTERVALS, OF_SEVERAL
from sktensor_dp.cli.officer_page import PAGES
from sktensor_dp.cli.public_lists import listed_name
from sktensor_dp.cli.ratings import ESTIMATES, NONE_SOUGHT, OF_AVERAGES, ORDER
from sktensor_dp.cli.recommend import ONE_ORDER, POPULARITY
from sktensor_dp.exceptions import NotEnoughDataWarning
from sktensor_dp.gaussian_mixture import intervals
from sktensor_dp.gaussian_mixture.recipe import UNEVEN
from sktensor_dp.mixtures.uncertainty import ParameterErrors

pytest.importorskip("matplotlib", reason="matplotlib is optional")
STARS = ("--person", "user", "--item", "film", "--rating", "stars", "--bounds", 1, 5)
RANGES = ("--range", "age", 0, 100, "--range", "visits", 0, 20)


@cache
def ratings_of_films() -> str:
    rng = np.random.default_rng(0)
    rows = ["user,film,stars,secret"]
    for person in range(1000):
        for film in rng.choice(30, size=20, replace=False):
            stars = np.clip(round(4.5 - film / 10 + 0.5 * rng.standard_normal()), 1, 5)
            rows.append(f"person{person},film {film:02d},{stars},x")
    return "\n".join(rows)


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    """1,000 persons of 20 ratings; film 0 is the best and film 29 the worst."""
    path = tmp_path / "ratings.csv"
    path.write_text(ratings_of_films(), encoding="utf-8")
    listed = "".join(f"film {n:02d}|The {n}\n" for n in range(30))
    (tmp_path / "films.csv").write_text("film|title\n" + listed)
    return path


@pytest.fixture
def visits(tmp_path: Path) -> Path:
    """Two rows for each of 3,000 persons, in two groups; some cells are empty or absurd."""
    rng = np.random.default_rng(0)
    young = rng.random(6000) < 0.6
    age = np.where(young, 25, 70) + 4 * rng.standard_normal(6000)
    stays = np.abs(np.where(young, 2, 12) + 0.8 * rng.standard_normal(6000))
    cells = [[f"{a:.1f}", f"{s:.1f}"] for a, s in zip(age, stays, strict=True)]
    cells[0], cells[1] = ["", "1e300"], ["-1e9", ""]
    cells[2], cells[3] = ["-999", "NA"], ["?", "-999"]
    rows = [f"p{n // 2},{a},{s}" for n, (a, s) in enumerate(cells)]
    path = tmp_path / "visits.csv"
    path.write_text("patient,age,visits\n" + "\n".join(rows), encoding="utf-8")
    return path


def text_of(picture: Path) -> str:
    """Lines of text in a picture: letters are drawn, and written beside as comments."""
    return " ".join(re.findall("<!-- (.*) -->", picture.read_text("utf-8")))


@pytest.mark.usefixtures("drawn")
def test_ratings_rank_items(command, ratings, tmp_path):
    done = command(
        "ratings", ratings, *STARS, "--items", "films.csv", "--title", "title", "--epsilon", 8
    )
    folder = tmp_path / "private-ratings"
    found = table(folder / "items.csv")
    order = [int(row["film"][5:]) for row in found]
    # 20,000 ratings about 30 averages deviate by .5: sampling alone gives .02, noise less than .2.
    assert all(0.01 < float(row["standard_error"]) < 0.2 for row in found)
    # Steps of .1 are far above the noise of a thousand persons at this epsilon.
    assert np.abs(np.array(order) - np.arange(30)).max() <= 8
    assert order[0] < 5 < 24 < order[-1]
    pairs = table(folder / "item_differences.csv")
    assert len(pairs) == 30 * 29 / 2
    rated = {row["film"]: row for row in found}
    for row in pairs:
        both = [rated[row[name]] for name in ("item", "other_item")]
        averages = [float(one["expected_rating"]) for one in both]
        change, low, high = (float(row[name]) for name in ("difference", "low", "high"))
        assert change == pytest.approx(averages[0] - averages[1], abs=1e-4)
        # Without the part of both errors that is the same.
        errors = [float(one["standard_error"]) for one in both]
        assert 0 < high - change == pytest.approx(change - low, rel=1e-3)
        assert high - change < 1.645 * np.hypot(*errors)
        far = int(row["item"][5:]) - int(row["other_item"][5:])
        assert far > 0
        assert row["clear"] == "yes" or far < 15
    assert "1,000 persons; each person is protected" in done.err
    assert "assumed: about 20 ratings each, --each" in done.err
    assert "would refuse" not in done.err  # as it would a further fit
    assert (
        "rating: column 'stars'; bounds: 1 to 5; items: films.csv; title: column 'title';"
        in done.err
    )
    assert "30 items, such as 'film 00', titled 'The 0'; ratings of any other" in done.err
    assert f"\n{ESTIMATES}\n{ORDER}\n" in done.out
    assert re.search(
        r"\nrating  standard error +item     title\n4\.\d+ +0\.\d+ +film 0\d  The \d\n", done.out
    )
    report = stated(folder)
    assert (report.unit, report.n_units) == ("person", 1000)
    assert "protected by differential privacy: 1,000 persons, epsilon 8, delta 1e-6." in done.out
    for name in ("for-the-officer.md", "items.csv", "statement.json"):
        text = (folder / name).read_text("utf-8")
        assert " 20000" not in text.replace(",", "")
        assert "person7" not in text
    assert (folder / "ratings.svg").read_text("utf-8").startswith("<?xml")
    model = PrivateCPCompletion.load(folder / "ratings.model")
    # All rate more than half of the items.
    assert "not for those who keep to few" not in " ".join(done.out.split())
    assert model.shape_ == (1000, 30)
    drawn = f"{model._shared.effects[0].drawn.mean():.0%}"
    assert f"is drawn to it by {drawn}, which these errors" in " ".join(done.out.split())
    swapped = pd.DataFrame({"film": ["film 00"], "user": ["person7"]})
    with pytest.raises(ValueError, match="feature names should match"):
        model.fold_in(swapped, [4.0])
    command("recommend", folder, ratings, *STARS[: STARS.index("--bounds")])
    assert not [*folder.glob("PRIVATE*")]
    n_titles = (text := ratings.read_text("utf-8")).count(",film 00,")
    ratings.write_text(text.replace(",film 00,", ",The 0,"), "utf-8")
    done = command("recommend", folder, ratings, *STARS[: STARS.index("--bounds")], "--output", "r")
    assert f"warning: {n_titles} ratings have a known title in --item film: name" in done.err
    found = table(Path("PRIVATE-recommendations", "PRIVATE-recommendations.csv"))
    assert all(row["title"] == f"The {int(row['film'][5:])}" for row in found)


def test_people_get_what_they_may_like_from_their_own_ratings(command, ratings, tmp_path):
    """Every second person likes even films, the others odd ones, beside what all like."""
    head, *rows = ratings.read_text("utf-8").splitlines()
    named = head.split(",")
    user, film, stars = (named.index(name) for name in ("user", "film", "stars"))
    cells = [row.split(",") for row in rows]
    for row in cells:
        likes = int(row[user].removeprefix("person")) % 2 == int(row[film][5:]) % 2
        row[stars] = f"{min(float(row[stars]), 3) + 2 * likes:g}"
    ratings.write_text("\n".join([head, *(",".join(row) for row in cells)]), "utf-8")
    done = command("ratings", ratings, *STARS, "--items", "films.csv", "--rank", 2, "--epsilon", 50)
    assert "\n\nDirections in which persons differ: who rates one side higher" in done.out
    assert "An epsilon above 10 promises little" in done.out
    folder = tmp_path / "private-ratings"
    found = table(folder / "items.csv")
    sides = {int(row["film"][5:]): float(row["direction_1"]) > 0 for row in found}
    even = sum(side == (film % 2 == 0) for film, side in sides.items())
    assert min(even, 30 - even) <= 3
    # What is printed on one side has one sign in the file, also where all have.
    row = re.search(r"\n1 +(.*)  +(.*)\n", done.out[done.out.index("Directions in which") :])
    for side in row.groups():
        assert len({sides[int(title[4:])] for title in side.strip().split(", ")}) == 1
    page = (folder / "for-the-officer.md").read_text()
    assert "1 of 2 directions can be seen" in page
    assert "What would help" not in done.err  # the forecast says nothing of a second one
    assert "An epsilon above 10 promises little" in page
    columns = STARS[: STARS.index("--bounds")]
    for row in cells[:20]:
        row[film] = "unknown"
    own = "\n".join([head, *(",".join(row) for row in cells)])
    ratings.write_text(own, "utf-8")
    done = command("recommend", folder, ratings, *columns, "--number", 3)
    said = (
        "1 person rated no known item, and got the items for anybody, at the level of their "
        "ratings.\nWritten: "
    )
    assert f"Known items in 19,980 of 20,000 ratings. {said}" in done.out
    assert done.err == ""
    again = command("recommend", folder, ratings, *columns, status=2).err
    assert "is there already, and was left as it is: move it away, or name another" in again
    (folder / "earlier-1").mkdir()
    (folder / "earlier-1" / "items.csv").touch()
    for wrong, said in (
        (
            own.replace(",film ", ",id "),
            f"names as in {folder}/items.csv; those of earlier runs are in {folder}/earlier-1",
        ),
        (own.replace(",5", ",x"), "or list such cells by --missing"),
    ):
        ratings.write_text(wrong, "utf-8")
        failed = command("recommend", folder, ratings, *columns, "--output", "r", status=2)
        assert said in failed.err
    # As in the run, a rating outside of the bounds counts as the nearest end.
    ratings.write_text(own.replace(",5", ",9"), "utf-8")
    n_five = own.count(",5")
    done = command("recommend", folder, ratings, *columns, "--number", 3, "--output", "clamped")
    assert f"warning: {n_five:,} of 20,000 ratings lie outside of the bounds of the run" in done.err
    kept = table(Path("clamped", "PRIVATE-recommendations.csv"))
    assert kept == table(Path("PRIVATE-recommendations", "PRIVATE-recommendations.csv"))
    swapped = ("--person", "film", "--item", "user", "--rating", "stars", "--output", "r")
    failed = command("recommend", folder, ratings, *swapped, status=2)
    assert failed.err == "error: --person film: in the run it was --person user\n"
    # A column of another name, with other items: two of three have no known name.
    ratings.write_text(re.sub(",film [01]", ",", own).replace("film", "work", 1))
    other = ("--person", "user", "--item", "work", "--rating", "stars", "--output", "other")
    assert re.match(
        "warning: --item work: in the run it was --item film\nwarning: most ratings name no known",
        command("recommend", folder, ratings, *other).err,
    )
    # Films that are not rated can be recommended, also those listed with an empty cell.
    full = [f"a,film {n:02},{4 if n else ''}" for n in range(30)]
    full += [f"b,film {n:02},4" for n in range(30)] + ["b,,9"]
    ratings.write_text("\n".join(["user,film,stars", *full]), "utf-8")
    said = command("recommend", folder, ratings, *columns, "--output", "full").out
    nothing = "Nothing is recommended to 1 person who rated all items.\n"
    lacking = "1 row without an item and 1 row without a rating"
    assert f" Left out: {lacking}. {nothing}" in said
    (row,) = table(Path("full", "PRIVATE-recommendations.csv"))
    assert (row["user"], row["film"]) == ("a", "film 00")
    ratings.write_text(own, "utf-8")
    command("recommend", folder, ratings, *columns, "--by-rating", "--output", "by")
    rated = {}
    for row in table(Path("by", "PRIVATE-recommendations.csv")):
        rated.setdefault(row["user"], []).append(-float(row["expected_rating"]))
    assert all(sorted(values) == values for values in rated.values())
    command("recommend", folder, ratings, *columns, "--number", 3, "--output", "r")
    kept = Path("PRIVATE-recommendations")
    (made, other) = (place / "PRIVATE-recommendations.csv" for place in (kept, Path("r")))
    assert made.read_bytes() == other.read_bytes()
    assert made.stat().st_mode & 0o777 == 0o600
    assert "3 items at most for each of 1,000 persons. Nothing protects it" in done.out
    n_found = PrivateCPCompletion.load(folder / "ratings.model").n_components_
    assert (ONE_ORDER in done.out) == (n_found == 0)
    assert done.out.endswith(f"{POPULARITY}\n")
    assert ORDER in done.out
    found = [(row["user"], row["film"]) for row in table(made)]
    n_known = {row["user"]: row["known_items"] for row in table(made)}
    assert n_known == {f"person{n}": "20" if n else "0" for n in range(1000)}
    assert len(found) == 3000
    assert not {*found} & {(row[user], row[film]) for row in cells}
    alike = [int(who.removeprefix("person")) % 2 == int(what[5:]) % 2 for who, what in found]
    assert np.mean(alike) > 0.8
    manifest = json.loads((kept / "manifest.json").read_text())
    assert manifest["private"] == ["PRIVATE-recommendations.csv"]
    assert manifest["finished"]
    earlier = shutil.copytree(folder, Path("o", "earlier-1"))
    failed = command("recommend", "o", ratings, *columns, status=2).err
    assert f"a run of ratings; those of earlier runs are in {earlier}" in failed
    command("recommend", earlier, ratings, *columns, "--output", "e")


def test_differences_without_intervals_are_unknown_and_all_say_what_gives_them(command, tmp_path):
    """500 persons with 5 ratings of 40 items each; a list of 120 items has no differences."""
    rng, persons = np.random.default_rng(0), np.repeat(np.arange(500), 5)
    items = rng.integers(0, 40, len(persons))
    rows = [f"p{a},i{b:03d},{c}" for a, b, c in zip(persons, items, 1 + items // 8, strict=True)]
    file = tmp_path / "r.csv"
    file.write_text("\n".join(["user,item,stars", *rows]), encoding="utf-8")
    columns = ("--person", "user", "--item", "item", "--rating", "stars", "--bounds", 1, 5)
    for n in (40, 120):
        names = tmp_path / "items.txt"
        names.write_text("\n".join(f"i{k:03d}" for k in range(n)), encoding="utf-8")
        done = command(
            "ratings", file, *columns, "--items", names, "--no-check", "--output", f"o{n}"
        )
        lowest = re.search(r"\nLowest averages \(standard errors in brackets\): (.*)\.\n", done.out)
        averages = [float(one.split()[0]) for one in lowest[1].split(", ")]
        assert len(averages) == 5
        assert averages == sorted(averages)
        page = Path(f"o{n}", "for-the-officer.md").read_text("utf-8")
        settings, results = page.split("## Who is protected")[0].split("## What it shows")
        assert "standard error" not in settings
        assert "averages over everybody" not in settings
        assert len(results.split()) < 150
        if n == 120:
            assert not Path("o120", "item_differences.csv").exists()
            assert (
                "Of more than 100 items there is no item_differences.csv: average_rows" in done.out
            )
            continue
        for said in (done.err, page):
            assert "item_differences.csv has no intervals, and does not say which" in said
            assert "It has them with about " in said
        assert {row["clear"] for row in table(Path("o40", "item_differences.csv"))} == {"unknown"}
        command("report", "page", "o40", "--output", "page")
        other = Path("page", "for-the-officer.md").read_text("utf-8")
        doubts = next(line for line in page.splitlines() if line.startswith("- warning of what"))
        assert doubts in other


def test_a_wrong_list_and_a_wrong_column_are_doubted(command, ratings):
    (ratings.parent / "wrong.txt").write_text("".join(f"no film {n}\n" for n in range(30)))
    both = ("ratings", ratings, *STARS, "--items", "wrong.txt", "--items-are-public")
    assert "or --items-are-public, not both" in command(*both, status=2).err
    wrong = ("ratings", ratings, *STARS, "--items", "wrong.txt", "--epsilon", 50)
    done = command(*wrong, status=2)
    assert re.search(
        r"match \(items in --items: \d\.\d%, and 9.* needed; noise has .*%, and alone stops about "
        r"\d\.\d% of checks of rows that all match\)",
        done.err,
    )
    # Of the budget of 50 the check alone is spent.
    assert float(re.search(r"charged, which takes (\S+) of epsilon 50 ", done.err)[1]) < 2
    assert (
        "written in the public lists as it is" in command(*wrong, "--no-check", "--epsilon", 45).err
    )
    text = ratings.read_text().replace(",x", ",8000")
    ratings.write_text(text.replace("stars,secret", "other,stars"))
    rest = ("--items", "films.csv", "--epsilon", 8, "--output", "o")
    assert "(ratings within --bounds: " in command("ratings", ratings, *STARS, *rest, status=2).err
    edge = command("ratings", ratings, *STARS, *rest, "--no-check", "--raise-budget", 9).err
    assert "lies at the edge of the range" in edge
    ratings.write_text(text)
    wide = (*STARS[:-2], -50, 50, *rest[:2], "--rank", 0, "--output", "w")
    assert "are the bounds far wider than values can be" in command("ratings", ratings, *wide).err
    rest = (*rest[:2], "--epsilon", 0.01, "--anyway", "--output", "p")
    # No check is left out without being told so, for nothing.
    for word in ((), ("--forecast",)):
        refused = command("ratings", ratings, *STARS, *rest, *word, status=2 - 2 * len(word)).err
        assert "No check can say what rows can be used: noise would hide the result" in refused
    assert re.search("If --person and --item are exchanged.* a run needs --no-check", refused)
    hard = command("ratings", ratings, *STARS, *rest, "--no-check").err
    noise = "Averages of items differ by noise and chance more than by ratings."
    found = "No direction was sought: all was spent on averages."
    assert re.search(f"{noise} {found} What would help: about [0-9,]+ persons, or --eps", hard)
    assert "edge" not in hard
    # Items that are equal: advice named fewer persons and a smaller epsilon than there were.
    rng = np.random.default_rng(0)
    equal = re.sub(r",\d,8000", lambda _: f",{rng.integers(2, 6)},x", text)
    ratings.write_text(equal)
    rest = ("--items", "films.csv", "--rank", 0, "--epsilon", 2, "--no-check", "--output", "q")
    done = command("ratings", ratings, *STARS, *rest)
    assert f"{noise} What would help: more persons." in done.err
    assert f"{noise} {found}" in text_of(Path("p", "ratings.svg"))


def test_names_in_capitals_are_others_and_that_is_said_whatever_the_names(command, ratings):
    asked = ("ratings", ratings, *STARS, "--items", "films.csv", "--forecast")
    said = "{} persons; each person is protected, with all rows of one 'user'\n"
    assert f"{said.format('1,000')}{EXACTLY}\n" in command(*asked).err
    head, *rows = ratings.read_text("utf-8").splitlines()
    rows[::2] = [row.replace("person", "Person") for row in rows[::2]]
    ratings.write_text("\n".join([head, *rows]), "utf-8")
    assert f"{said.format('2,000')}{EXACTLY}\n" in command(*asked).err
    done = command(*asked, "--normalise-labels")
    assert said.format("1,000") in done.err
    assert EXACTLY not in done.err


def test_a_forecast_says_what_a_check_can_find(command, ratings):
    """Noise may hide how many ratings are given, and not whether all are as declared."""
    asked = ("ratings", ratings, *STARS, "--items", "films.csv", "--anyway", "--forecast")
    for epsilon in (0.5, 2):
        said = command(*asked, "--epsilon", epsilon).err
        left = re.search(r"A check comes first, after which epsilon (\S+) is left .*\nIt sto", said)
        assert 0.97 * epsilon < float(left[1]) < epsilon
        assert re.search(r"\nNoise alone stops about [0-2]\.\d% of runs\.", said)
        assert ("\nIt stops, too, where under 5" in said) is (epsilon == 2)
        assert ("are 1,000 persons about as many as you expect?" in said) is (epsilon == 2)


def test_missing_ratings_are_left_out_and_codes_of_them_stop_a_run(command, ratings):
    """Averages are those without their rows, but for weights: one person more counts."""
    head, *rows = ratings.read_text("utf-8").splitlines()
    coded = [
        re.sub(r",[^,]*,x$", ",-9,x", row) if n % 8 == 0 else row for n, row in enumerate(rows)
    ]
    coded.append("-9,film 00,,x")  # a code of values is a person's name like others
    ratings.write_text("\n".join([head, *coded]), "utf-8")
    asked = (*STARS, "--items", "films.csv", "--rank", 0)
    run, page = ("ratings", ratings, *asked, "--epsilon", 8, "--output", "o"), Path("o", PAGES[0])
    charged, nothing = "Only the check was charged, which takes", "Nothing was spent"
    for spent in (charged, nothing, charged):
        stopped = command(*run, status=2).err
        assert re.search(rf"\(ratings within --bounds: 8\d\.\d%, .*--missing.* {spent}", stopped)
        if spent == nothing:  # other rows are checked again
            os.utime(ratings)
    # Whoever goes on does not pay for the check again; it is told beside the averages.
    doubt = r"Of rows perhaps 1\d.\d% fail 'ratings within --bounds'; noise has a deviation of"
    assert re.search(doubt, command(*run, "--no-check").out)
    assert re.search(rf"first: {doubt} .* Accepted by --no-check: 8", page.read_text("utf-8"))
    report, budget = stated(Path("o")), BudgetAccountant(path=Path("o", LEDGER))
    assert [row.name for row in report.rows].count("matching_rows") == 1
    assert re.search(doubt, " ".join(report.notes))
    assert [one.spender for one in budget.entries].count("check_inputs") == 2
    assert 7.8 < report.epsilon < budget.total()[0] <= 8
    missing, exact = ("--missing", "-9"), ("--epsilon", "inf", "--output")
    done = command("ratings", ratings, *asked, *missing, *exact, "p")
    assert "1,001 persons; each" in done.err
    assert "a rating that is missing: is left out" in done.err
    done = command("recommend", "p", ratings, *STARS[: STARS.index("--bounds")], *missing)
    assert "17,500 of 17,500 ratings. Left out: 2,501 rows without a rating. Nothing" in done.out
    ratings.write_text("\n".join([head, *(row for row in coded if "-9" not in row)]), "utf-8")
    command("ratings", ratings, *asked, *exact, "q")
    of_all, of_given = (table(Path(folder, "items.csv")) for folder in "pq")
    found, expected = ({row["film"]: float(row["expected_rating"]) for row in rows}
                       for rows in (of_all, of_given))  # fmt: skip
    assert found == pytest.approx(expected, abs=0.01)


def test_items_are_a_public_list_or_said_to_be_public(command, ratings):
    done = command("ratings", ratings, *STARS, status=2)
    assert "--items FILE must name a public list" in done.err
    done = command("ratings", ratings, *STARS, "--items-are-public", "--forecast")
    assert "typical error" in done.err
    assert "30 items, such as 'film 00'; ratings of any other are left out" in done.err
    assert [*map(listed_name, (" 7", "7.0", "7.5", "a.0"))] == ["7", "7", "7.5", "a.0"]
    (ratings.parent / "films.txt").write_text("\n".join(f"film {n:02d}" for n in range(30)))
    for name, status in (("films.txt", 0), ("films.csv", 0), (ratings, 2), ("absent", 2)):
        command("ratings", ratings, *STARS, "--items", name, "--forecast", status=status)
    (ratings.parent / "films.csv").write_text("film\nfilm 00\nfilm 00\nfilm 01\n")
    done = command("ratings", ratings, *STARS, "--items", "films.csv", "--forecast")
    assert "2 items, such as 'film 00'" in done.err
    assert "1 row of --items named an item again." in done.err
    (ratings.parent / "films.csv").write_text("id,title\n1,film 00\n")
    done = command("ratings", ratings, *STARS, "--items", "films.csv", status=2)
    assert "column 'film' does not exist: 'films.csv' has 2 columns" in done.err


def test_tables_are_those_of_spreadsheets(command, ratings):
    """Decimal commas, a line that names the delimiter, and names that would run as formulas."""
    text = ratings.read_text("utf-8").replace("film 0", "=1+").replace(",", ";").replace(".", ",")
    Path("commas.csv").write_text(f"sep=;\n{text}")
    arguments = ("ratings", "commas.csv", *STARS, "--decimal", ",", "--epsilon", 8)
    command(*arguments, "--items-are-public", "--output", "p")
    head, *rows = Path("p", "items.csv").read_text("utf-8").splitlines()
    assert {row.split(",")[2] for row in rows} >= {"'=1+0", "'=1+9", "film 29"}
    # Its own list is read as what it was.
    Path("items.csv").write_text("\n".join([head, *sorted(rows)[::-1]]))
    shown = command(*arguments, "--items", "items.csv", "--forecast").err
    assert "30 items, such as '=1+" in shown


@pytest.mark.usefixtures("drawn")
def test_groups_have_sizes_and_averages(command, visits, tmp_path):
    arguments = (
        *("groups", visits, *RANGES, "--person", "patient", "--epsilon", 2),
        *("--missing", "NA", "?", "-999"),
    )
    done = command(*arguments)
    folder = tmp_path / "private-groups"
    rows = table(folder / "groups.csv")
    found = {row["group"]: {k: float(v) for k, v in row.items()} for row in rows}
    # Averages of 2,000 rows are known to a tenth of their deviations; noise adds as much.
    assert found["1"]["share"] == pytest.approx(0.6, abs=0.05)
    assert found["1"]["share_low"] < found["1"]["share"] < found["1"]["share_high"]
    assert found["1"]["age"] == pytest.approx(25, abs=3)
    assert found["2"]["visits"] == pytest.approx(12, abs=1)
    for row in found.values():
        for name in ("age", "visits"):
            assert row[f"{name}_low"] < row[name] < row[f"{name}_high"]
    shown = re.search(r"age +(\S+) +(\S+) to (\S+)\n", done.out)
    assert shown
    ages = [found["1"][name] for name in ("age", "age_low", "age_high")]
    assert [float(one) for one in shown.groups()] == pytest.approx(ages, rel=1e-3)
    notes = [CLAMPED, *(one.format(OF_SEVERAL) for one in INTERVALS)]
    assert "\n".join(notes) in done.out
    assert " ".join(notes) in (folder / "for-the-officer.md").read_text("utf-8")
    assert (done.out + done.err).count("times as likely in them as in one") == 1
    (age, stays) = table(folder / "group_differences.csv")
    assert [age[name] for name in ("group", "other_group", "column")] == ["2", "1", "age"]
    assert age["clear"] == "yes"
    means = [float(found[number]["visits"]) for number in "21"]
    assert float(stays["difference"]) == pytest.approx(means[0] - means[1], rel=1e-4)
    assert float(stays["low"]) < float(stays["difference"]) < float(stays["high"])
    assert "3,000 persons; each person is protected" in done.err
    assert (
        "range: 'age' 0 to 100, 'visits' 0 to 20; person: column 'patient'; "
        "missing: 'NA', '?', '-999'; " in done.err
    )
    assert (
        "an empty cell: is missing: the row counts by its other cells; a number outside its range: "
        "counts as the nearest end; rows of one person: " in done.err
    )
    assert "of one size, well apart. Smaller or closer ones need more" in done.err
    assert "is --range right?" not in done.err
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert page.count(f"- version: sktensor_dp {sktensor_dp.__version__}\n- command: ") == 1
    assert "- range: 'age' 0 to 100, 'visits' 0 to 20\n" in page
    assert "- groups: 3\n" in page
    assert "further than that: in at most 1 of 30,5" in page
    assert "after all runs" not in page
    assert (folder / "groups.svg").read_text("utf-8").startswith("<?xml")
    model = PrivateGaussianMixture.load(folder / "groups.model")
    assert model.feature_names_in_.tolist() == ["age", "visits"]
    # The model is in the units of the columns.
    assert model.means_[:, 0].tolist() == pytest.approx([found[n]["age"] for n in found], rel=1e-4)
    assert model.means_interval()[0][0, 0] == pytest.approx(found["1"]["age_low"], rel=1e-4)
    whose = pd.DataFrame({"age": [25.0, 70.0, np.nan], "visits": [2.0, 12.0, 12.0]})
    assert model.predict(whose).tolist() == [0, 1, 1]
    for name in ("for-the-officer.md", "groups.csv", "statement.json"):
        text = (folder / name).read_text("utf-8").replace('"units_read": 6000', "twice 3000")
        assert "6000" not in re.findall(r"[\d.]+", text.replace(",", ""))


def test_categories_are_columns_of_shares(command, visits, tmp_path):
    """Of each group all come from the north, or from the south; "east" is no category."""
    head, *rows = visits.read_text("utf-8").splitlines()
    side = lambda row: "north" if row.rpartition(",")[2] < "5" else "south"  # noqa: E731
    lines = [f"{row},{side(row)}" for row in rows]
    lines[5] = lines[5].replace("south", "east").replace("north", "east")
    lines[::2] = [f"{line} " for line in lines[::2]]  # blanks are part of no category
    visits.write_text("\n".join([f"{head},side", *lines]), encoding="utf-8")
    asked = (
        *("groups", visits, *RANGES[:4], "--category", "side", "north ", "south"),
        *("--person", "patient"),
        *("--groups", 2, "--epsilon", 100, "--anyway", "--missing", "NA", "?", "-999"),
    )
    done = command(*asked)
    assert "category: 'side' is 'north' or 'south'; " in done.err
    report = stated(tmp_path / "private-groups")
    assert (report.epsilon, report.unit) == (pytest.approx(100.0), "person")
    page = (tmp_path / "private-groups" / "for-the-officer.md").read_text("utf-8")
    assert "\nEnough if groups are well apart: 3,000 persons for" in done.err
    said = "share of rows that have it, averaged over persons, of those with a listed one. A row"
    assert said in done.out
    for said in (done.out, page, " ".join(report.notes)):
        assert "count each person by the part of their rows that have it" in said
    assert "warning: Unless" not in done.err
    assert not re.search(r"\beast\b", done.err + done.out + page)
    found = {row["group"]: row for row in table(tmp_path / "private-groups" / "groups.csv")}
    head = [f"{name}{end}" for name in ("age", "side=north", "side=south") for end in ENDS]
    assert list(found["1"]) == ["group", "share", "share_low", "share_high", *head]
    for row in found.values():
        shares = float(row["side=north"]), float(row["side=south"])
        assert sorted(shares) == pytest.approx([0, 1], abs=0.2)
        assert sum(shares) == pytest.approx(1)
        widths = [float(row[f"side=north{end}"]) - shares[0] for end in ENDS]
        others = [shares[1] - float(row[f"side=south{end}"]) for end in ENDS]
        assert widths[1:] == pytest.approx(others[:0:-1], abs=0.01)
    for category, told in (
        (("side", "north"), "names a column or a category twice"),
        (("ward", "a,b"), "no commas"), (("ward",), "name all of its public values"),
    ):  # fmt: skip
        again = command(*asked, "--category", *category, status=2)
        assert told in again.err


def test_categories_that_are_not_given_are_missing_or_one_of_their_own(command, visits, tmp_path):
    """Four in five are not given: averages of the rows that are in a group add up to 1."""
    head, *rows = visits.read_text("utf-8").splitlines()
    chances = {"": 0.4, "NA": 0.4, "low": 0.05, "high": 0.15}
    codes = np.random.default_rng(0).choice([*chances], len(rows), p=[*chances.values()])
    lines = (f"{row},{code}" for row, code in zip(rows, codes, strict=True))
    text = "\n".join([f"{head},test", *lines])
    visits.write_text(text, "utf-8")
    columns = ("--range", "age", 0, 100, "--category", "test", "high", "low", "not given")
    asked = (*columns, "--groups", 3, "--missing", "NA", "?", "-999", "--no-check")
    command("groups", visits, *asked)
    found = table(tmp_path / "private-groups" / "groups.csv")
    names = [f"test={value}" for value in ("high", "low", "not given")]
    shares = np.array([float(row["share"]) for row in found])
    averages = np.array([[float(row[name]) for name in names] for row in found])
    # Deviations of noise are about .02 and .007.
    np.testing.assert_allclose(averages.sum(axis=1), 1, atol=0.1)
    np.testing.assert_allclose(shares @ averages, [0.15, 0.05, 0.8], atol=0.05)
    # Otherwise they are missing, and no check stops a run for that.
    asked = (*columns[:-1], "--groups", 1, *asked[11:-1], "--output", "o")
    done = command("groups", visits, *asked)
    told = re.search(r"perhaps ([\d.]+)% fail 'test given', as up to 100% may", done.err)
    assert float(told[1]) == pytest.approx(80, abs=3)
    (row,) = table(tmp_path / "o" / "groups.csv")
    for name, share in zip(names, (0.75, 0.25), strict=False):
        assert abs(float(row[name]) - share) < 0.15


def test_averages_at_the_edge_of_a_range_are_doubted(command, visits, tmp_path):
    """Where counts begin is no edge, and of a range that is too wide nothing is said."""
    ranges = ("--range", "age", -1e5, 1e5, "--range", "visits", 0, 0.2)
    given = (*ranges, "--missing", "NA", "?", "-999", "--no-check")
    done = command("groups", visits, *given, "--groups", 1, "--epsilon", 1e6, "--anyway")
    said = "warning: The averages of visits lie at the end of its range: is the range in"
    (doubt,) = (line for line in done.err.splitlines() if "the averages" in line.lower())
    assert doubt.startswith(said)
    assert said.removeprefix("warning: ") in text_of(tmp_path / "private-groups" / "groups.svg")
    picture = text_of(tmp_path / "private-groups" / "groups.svg")
    for line in CENTRES:
        assert f"\n{line}\n" in done.out
        assert line in picture


def test_codes_among_numbers_stop_a_run_and_absent_intervals_have_a_reason(
    command, visits, tmp_path, monkeypatch
):
    monkeypatch.setattr(intervals, "errors_of", lambda _: None)
    head, *rows = visits.read_text("utf-8").splitlines()
    cells = [row.split(",") for row in rows]
    asked = (*RANGES, "--missing", "NA", "?", "-999", "--groups", 2, "--epsilon", 4)

    def run(every: int, code: str, status: int, *more: object) -> Answer:
        """Write a code instead of each so many-th age; for each eighth, of visits, too."""
        coded = [
            [who, *((age, n_of) if n % every else (code, code if every == 8 else n_of))]
            for n, (who, age, n_of) in enumerate(cells)
        ]
        visits.write_text("\n".join([head, *map(",".join, coded)]), "utf-8")
        return command(
            "groups", visits, *asked, *more, "--output", f"o{every}{code}", status=status
        )

    units, codes = "Is the range of age in other units than", "some cells of age in other units"
    most = run(1, "-9", 2).err
    assert "(age in its range: " in most
    assert units in most
    assert codes not in most
    # The fit would follow codes in one in nine; cells that are empty count for nothing.
    few = run(9, "-9", 2).err
    assert "Or is the range too narrow, or narrow on purpose?" in few
    assert re.search(rf"\(age in its range: (8|9)\d\.\d%, .*{codes}, .* as -9\? --missing", few)
    assert units not in few
    # Columns of one cause are asked about at once.
    both = run(8, "-9", 2).err
    assert re.search(r"\(age in .*%, visits in .*%, and 9\d\.\d% of each are needed; ", both)
    assert re.search(f"{codes.replace('age', 'age, visits')}, .* as -9\\? --missing", both)
    # One in two hundred passes, and is named beside the averages.
    some = run(200, "-9", 0, "--epsilon", "inf").out
    assert "Of rows perhaps 0.5% fail 'age in its range'" in some
    done = run(3, "", 0)
    assert "fail 'age given'" in done.err
    assert "age in its range'" not in done.err
    page = Path("o3", "for-the-officer.md").read_text("utf-8")
    reason = "There are no intervals: "
    for text in (done.out, page):
        assert reason in text
        assert "Intervals count" not in text
    assert "nan" not in done.out
    for row in table(tmp_path / "o3" / "groups.csv"):
        assert {row[f"{name}{end}"] for name in ("age", "visits") for end in ENDS[1:]} == {""}


def test_a_code_of_missing_values_may_be_of_one_column(command, tmp_path):
    drawn = np.random.default_rng(0).normal(3, 1, (3000, 2))
    drawn[drawn > 3.5] = 9  # three in ten
    cells = [f"{age:.4g},{stays:.4g}" for age, stays in drawn]
    (tmp_path / "a.csv").write_text("\n".join(["age,stays", *cells, "NA,NA"]), encoding="utf-8")
    asked = ("groups", "a.csv", "--range", "age", 0, 10, "--range", "stays", 0, 10, "--groups", 1)
    wrong = command(*asked, "--epsilon", "inf", "--missing", "stay=9", status=2)
    assert "--missing stay=9: COLUMN=CELL names no column that is used" in wrong.err
    command(*asked, "--epsilon", "inf", "--no-check", "--missing", "stays=9")
    (row,) = table(tmp_path / "private-groups" / "groups.csv")
    assert float(row["age"]) == pytest.approx(drawn[:, 0].mean(), abs=0.1)
    assert float(row["stays"]) < 3.5


def test_only_columns_without_intervals_are_marked(command, visits, tmp_path, monkeypatch):
    def one_is_unknown(model):
        return SimpleNamespace(std=np.array([[0.0, 1.0, np.nan]]))

    monkeypatch.setattr(intervals, "errors_of", one_is_unknown)
    done = command("groups", visits, *RANGES, "--missing", "NA", "?", "-999", "--groups", 1)
    page = (tmp_path / "private-groups" / "for-the-officer.md").read_text("utf-8")
    for text in (done.out, page):
        assert "There are no intervals of visits: a group has nearly one value there" in text
        assert "Intervals count" in text
    assert re.search(r"age +\S+ +\S+ to ", done.out)
    assert re.search(r"visits +\S+ +not known", done.out)
    (row,) = table(tmp_path / "private-groups" / "groups.csv")
    assert row["age_low"]
    assert not row["visits_low"]


def test_categories_and_named_columns_make_no_groups(command, tmp_path):
    ages = np.random.default_rng(0).normal(50, 10, 4000)
    cells = [f"{age:.1f},{'ab'[n % 2]}" for n, age in enumerate(ages)]
    (tmp_path / "wards.csv").write_text("\n".join(["age,ward", *cells]), encoding="utf-8")
    asked = ("--range", "age", 0, 100, "--groups", 2, "--epsilon", 20, "--anyway")
    done = command("groups", "wards.csv", *asked, "--category", "ward", "a", "b")
    assert "1 of 2 groups can be seen" in done.err
    # A count of many zeros is doubted, unless it is named.
    stays = np.random.default_rng(1).poisson(4, 4000) + 1
    cells = [f"{age:.1f},{stays[n] * (n % 2)}" for n, age in enumerate(ages)]
    (tmp_path / "wards.csv").write_text("\n".join(["age,stays", *cells]), encoding="utf-8")
    done = command("groups", "wards.csv", *asked, "--range", "stays", 0, 30, "--output", "o")
    said = "A group has nearly one value of stays, at the end of its range: many zeros"
    assert done.err.count(said) == 1
    asked = (*asked, "--range", "stays", 0, 30, "--nonnormal", "stays")
    done = command("groups", "wards.csv", *asked, "--output", "named")
    assert "nonnormal: stays" in done.err
    assert "1 of 2 groups can be seen" in done.err


def test_fewer_groups_than_asked_are_named_without_noise_too(command, tmp_path):
    ages = np.random.default_rng(0).normal(50, 10, 4000)
    (tmp_path / "ages.csv").write_text("\n".join(["age", *map(str, ages)]), encoding="utf-8")
    asked = ("--range", "age", 0, 100, "--groups", 3, "--epsilon", "inf")
    done = command("groups", "ages.csv", *asked)
    assert "1 of 3 groups can be seen" in done.err
    assert "another run, as starts are random" in done.err


def test_groups_with_shares_that_may_be_0_are_not_seen(command, tmp_path, monkeypatch):
    """Errors are made larger, as between groups that overlap."""
    ages = np.random.default_rng(0).normal(np.repeat([20, 50, 80], [3000, 1500, 1500]), 5)
    (tmp_path / "ages.csv").write_text("\n".join(["age", *map(str, ages)]), encoding="utf-8")
    asked = ("groups", "ages.csv", "--range", "age", 0, 100, "--groups", 3, "--epsilon", 4)
    assert "3 of 3 groups can be seen above the noise. Rows are" in command(*asked).out
    errors_of = intervals.errors_of

    def much_error(model: PrivateGaussianMixture) -> ParameterErrors:
        products = errors_of(model).products.copy()
        products[:, 0, :, 0] = np.diag(np.square([0.0, 0.2, 0.2]))
        return ParameterErrors(products)

    monkeypatch.setattr(intervals, "errors_of", much_error)
    done = command(*asked, "--output", "o")
    said = (
        "3 of 3 groups are shown, 1 of them above the noise. Noise and chance hide 2 "
        "groups (2, 3): 90% intervals of shares begin at 0, so that rows may be of other groups."
    )
    assert f"warning: {said} What would help: a smaller --groups, or more rows" in done.err
    assert "can be seen" not in done.out + done.err
    assert "times as likely" not in done.out + done.err
    page = Path("o", "for-the-officer.md").read_text("utf-8")
    assert said in page
    assert "their names may come out" not in page  # there are no texts
    assert said in " ".join(text_of(Path("o", "groups.svg")).split())
    assert [float(row["share_low"]) > 0 for row in table(Path("o", "groups.csv"))] == [1, 0, 0]
    model = PrivateGaussianMixture.load(Path("o", "groups.model"))
    for ask in (model.groups_table, model.weights_interval):
        with pytest.warns(NotEnoughDataWarning, match=r"hide 2 groups \(2, 3\): 90% intervals"):
            ask()


def test_numbers_in_a_range_of_zeros_and_ones_are_nonnormal(command, visits):
    asked = ("groups", visits, *RANGES[:4], "--range", "visits", 1, 2, "--forecast")
    assert "nonnormal: visits" in command(*asked, "--missing", "NA", "?").err


def test_a_range_of_few_whole_numbers_may_be_of_scores(command, visits):
    def said(high: float, *more: str) -> str:
        ranges = (*RANGES[:4], "--range", "visits", 0, high)
        coded = ("--missing", "NA", "?", "-999")
        return command("groups", visits, *ranges, *coded, *more, "--forecast").err

    assert said(6).count("whole numbers (visits): if these are scores, name the") == 1
    for told in (said(7), said(5.5), said(6, "--nonnormal", "visits"), said(6, "--groups", "1")):
        assert "if these are scores" not in told
    assert "(visits): if most values of such a score are in its middle" in said(10)
    assert "such a score" not in said(6) + said(21) + said(10, "--groups", "1")


@pytest.mark.parametrize(
    ("file", "asked"),
    [
        ("posts", ("topics", "--text", "post", "--topics", 2)),
        ("ratings", ("ratings", *STARS[2:], "--items", "films.csv")),
        pytest.param(
            "visits",
            ("groups", *RANGES, "--missing", "NA", "?", "-999"),
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_ids_of_rows_are_no_persons(command, request, file, asked):
    """Without noise, which would let them pass in 1 of 44 runs."""
    kind, *rest = asked
    table_of_rows = request.getfixturevalue(file)
    head, *rows = table_of_rows.read_text("utf-8").splitlines()
    named = [f"row{n},jan,{row}" for n, row in enumerate(rows)]
    table_of_rows.write_text("\n".join([f"id,month,{head}", *named]), "utf-8")
    by_id = (kind, table_of_rows, *rest, "--person", "id", "--epsilon", "inf")
    said = command(*by_id, status=2).err.splitlines()[-1]
    assert "Hardly any person has more than one row: are groups (--person" in said
    assert "leave it out" not in said  # the folder's budget would refuse that
    assert said.endswith(
        "To go on all the same: --no-check, which does not pay again for the check"
    )
    if kind == "topics":  # where it is public that each has one text
        by_month = (*by_id, "--by", "month", "--by-values", "jan,", "--output", "by")
        assert (
            "--one-row-each says that each has one."
            in command(*by_month, "--epsilon", 8, "--forecast").err
        )
        assert "--one-row-each says that each has, and" in command(*by_month, status=2).err
        done = command(*by_month, "--one-row-each").err
        assert "by has no finished run to add shares to: this run begins anew" in done
        assert "one row each: as the run was told, not checked" in done
    if kind != "ratings":
        assert "--one-row-each says that each has" in said
    if kind == "groups":  # beside a table of several rows, whose budget is of persons
        went_on = command(*by_id, "--no-check").err
        assert "Accepted by --no-check: hardly any person has several rows" in went_on
        declared = command(*by_id, "--one-row-each", "--output", "one").err
        assert "Accepted by" not in declared
        assert "one row each: as the run was told, not checked" in declared
        assert "rows of one person: weigh as much as one row" in went_on
        assert "rows of one person" not in declared
        run = KINDS_OF_RUN[kind](parse([*map(str, by_id), "--one-row-each"]))
        notes = SimpleNamespace(privacy_report_=SimpleNamespace(notes=(UNEVEN, "another")))
        run.models = {"groups": notes}
        assert [*run._on_persons()] == ["another"]


def test_laboratory_values_are_analysed_as_logs(command, tmp_path):
    """One group has ten times the values of the other; a few are 0, or missing."""
    rng = np.random.default_rng(0)
    values = 10 ** rng.normal(np.repeat([0.0, 1.0], 2000), 0.1)
    cells = [
        "" if n % 50 == 0 else "0" if n % 500 == 1 else f"{v:.4f}" for n, v in enumerate(values)
    ]
    (tmp_path / "labs.csv").write_text("\n".join(["crp", *cells]), encoding="utf-8")
    asked = ("groups", "labs.csv", "--log-range", "crp", 0.01, 1000, "--groups", 2, "--epsilon", 8)
    done = command(*asked)
    rows = table(tmp_path / "private-groups" / "groups.csv")
    found = sorted(float(row["crp (geometric mean)"]) for row in rows)
    assert found == pytest.approx([1.0, 10.0], rel=0.3)
    assert "log range: 'crp' 0.01 to 1000" in done.err
    assert "crp (log10)" in text_of(tmp_path / "private-groups" / "groups.svg")
    assert (
        "LOW < HIGH, LOW > 0"
        in command("groups", "labs.csv", "--log-range", "crp", 0, 9, status=2).err
    )
    (tmp_path / "labs.csv").write_text("crp\n1\n" + "\n" * 3999, encoding="utf-8")
    done = command(*asked, "--output", "empty", status=2)
    assert "(crp given: " in done.err
    assert "Only the check was charged" in done.err
    (tmp_path / "labs.csv").write_text("crp\n" + "1\n0\n" * 2000, encoding="utf-8")
    done = command(*asked, "--output", "zeros", status=2)
    assert "(crp in its log range, so above 0: " in done.err


RUNS_OF_TABLES = {
    "ratings": ("ratings", "ratings.csv", *STARS, "--items", "films.csv", "--epsilon", 8),
    "groups": ("groups", "visits.csv", *RANGES, "--groups", 2, "--missing", "NA", "?", "-999"),
}  # fmt: skip


@pytest.mark.usefixtures("ratings", "visits")
@pytest.mark.parametrize("run", RUNS_OF_TABLES)
def test_models_that_are_paid_for_are_written_and_not_fitted_again(command, monkeypatch, run):
    """A run that stopped while it wrote goes on at no cost; one that is finished is refused."""
    asked, folder = RUNS_OF_TABLES[run], Path(f"private-{run.split()[0]}")

    def broken(*_: object) -> None:
        raise ValueError("no ink")

    with monkeypatch.context() as patched:
        patched.setattr("sktensor_dp.cli.execution.save_svg", broken)
        assert "The same command goes on from there" in command(*asked, status=2).err
    spent, stated_before = BudgetAccountant(path=folder / LEDGER).total(), stated(folder)
    name = {"ratings": "items.csv"}.get(run, "groups.csv")
    found = (folder / name).read_text("utf-8")
    assert ".model of private-" in command(*asked).err
    assert (folder / name).read_text("utf-8") == found
    command("report", "check", folder)
    # The order of a table is no setting of what was learned.
    order = ["--by-rating"] * (run == "ratings")
    last = command(*asked, *order, status=2).err.splitlines()[-1]
    assert last == (
        f"error: This run is finished: its results are in {folder}. To pay for all again: "
        "--again. Nothing was spent."
    )
    assert (BudgetAccountant(path=folder / LEDGER).total(), stated(folder)) == (
        spent, stated_before
    )  # fmt: skip


@pytest.mark.parametrize(
    "whose", [("--person", "patient"), pytest.param((), marks=pytest.mark.nightly)]
)
def test_the_number_of_units_can_be_private(command, visits, tmp_path, whose):
    """Before the fit all goes by a guess, and after it by released counts."""
    asked = (
        *("groups", visits, *RANGES, *whose, "--missing", "NA", "?", "-999"),
        *("--epsilon", 8, "--groups", 2, "--add-remove", "--persons", 4321),
    )
    done = command(*asked)
    unit = "person" if whose else "row"
    assert f"4,321 {unit}s (assumed, the true number is private); each" in done.err
    folder = tmp_path / "private-groups"
    report = stated(folder)
    assert (report.neighbours, report.unit) == ("add_remove", unit)
    page = (folder / "for-the-officer.md").read_text("utf-8")
    assert f"About {report.n_units:,} {unit}s were analysed" in page
    n = 3000 if whose else len(visits.read_text("utf-8").splitlines()) - 1
    assert not {str(n), f"{n:,}"} & set(re.findall(r"\d[\d,]*\d", done.err))
    command("report", "check", folder)
    if not whose:
        return
    # The promise is another one than that of runs that show the number.
    command(*asked, "--raise-budget", 99, "--again")
    assert "do not add up to one promise" in command(*asked[:-3], status=2).err
    # How many there are does not show by an error, either, but by a released count.
    visits.write_text("patient,age,visits\n", "utf-8")
    done = command(*asked, "--output", "none", status=2)
    assert re.search(
        rf"Noise hides how many rows match: .*\nerror: --persons 4321 does not .*: \d+ {unit}",
        done.err,
    )
    command(*asked, "--output", "all", "--no-check")
    done = command(*asked[:-2], status=2)
    assert "--add-remove and --persons N go together" in done.err


@pytest.mark.parametrize(
    ("ranges", "told"),
    [
        (("--range", "age", 100, 0), "--range age 100 0: LOW and HIGH are two numbers, LOW < HIGH"),
        (("--range", "age", 0, "inf"), "--range age 0 inf: LOW and HIGH are two numbers"),
        (("--range", "age", 0, "much"), "--range age 0 much: LOW and HIGH are two numbers"),
        (
            ("--person", "patient", "--range", "patient", 0, 100),
            "--range or --log-range name a column twice, or that of persons",
        ),
        ((*RANGES, "--range", "age", 0, 9), "--range or --log-range name a column twice"),
        (("--range", "weight", 0, 9, "--groups", 1), "'weight' does not exist"),
        (
            ("--range", "age", 0, 9, "--category", "visits", "1", "--category", "visits", "2"),
            "--category names a column or a category twice: list all values once",
        ),
        (
            ("--range", "age", 0, 9, "--category", "age", "1"),
            "--category age: --range, --log-range or",
        ),
        (
            ("--range", "age", 0, 9, "--nonnormal", "sex"),
            "--nonnormal sex: no --range or --log-ran",
        ),
        (
            ("--range", "patient", 0, 9, "--range", "age", 0, 9, "--groups", 2),
            "leave the cell empty, or list such cells by --missing; categories need --category)",
        ),
    ],
)
def test_wrong_ranges_are_named(command, visits, ranges, told):
    done = command("groups", visits, *ranges, "--missing", "NA", "?", "-999", "--anyway", status=2)
    assert told in done.err.splitlines()[-1]
    assert "p17" not in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("topics", "--persons", 3000, "--words", 500, "--topics", 5),
        ("ratings", "--persons", 3000, "--items", 100, "--bounds", 1, 5, "--error", 0.92),
        ("ratings", "--persons", 3000, "--items", 100, "--bounds", 1, 5, "--average-error", 0.05),
        ("groups", "--persons", 3000, "--columns", 6),
        ("groups", "--persons", 3000, "--columns", 6, "--groups", 1, "--within", 0.01),
    ],
)
def test_forecasts_need_no_file(command, arguments, tmp_path):
    has_target = arguments[-2] in ("--error", "--average-error", "--within")
    asked, target = (arguments[:-2], arguments[-2:]) if has_target else (arguments, ())
    alone = ("--rank", 0) if "--average-error" in target else ()
    done = command("forecast", *asked, "--epsilon", 2)
    assert done.err == ""
    assert done.out.strip()
    assert list(tmp_path.iterdir()) == []
    one = [1 if word == 3000 else word for word in asked]
    assert re.search("1 person[^s]", command("forecast", *one).out)
    place = asked.index("--persons")
    rest = (*asked[:place], *asked[place + 2 :])
    for sought, kept in (("epsilon", asked), ("persons", rest)):
        *lines, found = command("forecast", *kept, "--find", sought, *target).out.splitlines()
        least = re.search(f" from --{sought} ([0-9.]+) on ", found)[1]
        # The forecast is that of what is found; of topics it says, too, when half of runs see most.
        given = (*kept, *alone, f"--{sought}", least)
        again = command("forecast", *given).out.splitlines()
        assert [line.partition(" Half of all")[0] for line in lines] == again
        # What is found is enough by itself, and less is not.
        options = parse([*map(str, ("forecast", *given, *target, "--find", sought))])
        run = KINDS_OF_RUN[asked[0]](options)
        run.n_units, run.n_items = options.persons, options.items or 0
        run.build()
        assert run.is_enough()
        less = int(least) - 1 if sought == "persons" else 0.99 * float(least)
        assert not run.changed(**{"n_units" if sought == "persons" else sought: less}).is_enough()
    if target:
        *lines, found = command(
            "forecast", *asked, "--find", "epsilon", target[0], 1e-3, status=0
        ).out.splitlines()
        assert found.startswith("No --epsilon up to 10, as above, would be enough for 3,000 person")
        assert " if " in found
        assert command("forecast", *asked, *alone, "--epsilon", 10).out.splitlines() == lines


def test_a_run_at_the_least_epsilon_is_forecast_to_be_enough_after_its_check(command, visits):
    found = command("forecast", "groups", "--persons", 3000, "--columns", 2, "--find", "epsilon")
    least = re.search(r"Enough from --epsilon (\S+) on", found.out)[1]
    coded = ("--missing", "NA", "?", "-999", "--person", "patient", "--forecast")
    run = command("groups", visits, *RANGES, *coded, "--epsilon", least).err
    assert "\nEnough if groups are well apart: 3,000 persons for at most 3 groups" in run
    assert "A check comes first" in run


def test_no_number_gives_intervals_to_a_fit_that_makes_none(command):
    asked = ("forecast", "groups", "--columns", 300, "--groups", 1, "--find", "persons")
    assert "No --persons up to 1,000,000,000, as" in command(*asked, "--within", 0.1).out
    assert "No intervals around averages: there are over 2500 par" in command(*asked).out


@pytest.mark.parametrize(
    ("epsilon", "persons", "topics", "length", "words", "said"),
    # Of six collections, 1 to 14 words were kept in the first case; 115 to 394 in that of 6,000,
    # and 4 to 10 topics found.
    [
        (0.4, 3000, 10, 100, 8, "Too few"),
        (0.4, 3000, 3, 100, 8, "Too few"),
        (1, 3000, 10, 100, 47, "Likely too few"),
        (4, 1000, 5, 100, 59, "May be enough"),
        (4, 3000, 10, 100, 219, "May be enough"),
        (4, 6000, 3, 100, 461, "Enough"),
        (4, 6000, 10, 8, 116, "May be enough"),
        (1, 300, 3, 100, 0, "Too few"),
    ],
)
def test_few_words_foretell_few_topics(command, epsilon, persons, topics, length, words, said):
    asked = ("--epsilon", epsilon, "--persons", persons, "--topics", topics)
    shown = command("forecast", "topics", *asked, "--words-per-text", length).out
    assert re.search(f"\n{said}(:| if all of a person's texts have about {length} words, )", shown)
    assert f"Of ordinary texts about {words} words are kept, in tests" in shown


@pytest.mark.parametrize(
    ("persons", "said", "exact"),
    [
        (9, "likely too few", "may be enough"),
        (130, "may be enough", "enough"),
        (300, "may be enough", "enough"),
        (600, "enough", "enough"),
    ],
)
def test_verdicts_on_ratings_by_what_can_be_seen_of_items(command, persons, said, exact):
    # Of 30, 100, 300 and 1,000 persons drawn, the averages that fits found had correlations of
    # .28, .52, .85 and .98 with the true ones; without noise, those of 9, 40, 130 and 600 persons
    # had .49, .75, .92 and .98.
    asked = ("--persons", persons, "--items", 100, "--bounds", 1, 5)
    shown = command("forecast", "ratings", *asked).out
    assert shown.startswith(f"{OF_AVERAGES[said]}; too few for one direction")
    assert NONE_SOUGHT in shown
    # An item that fewer rated has an average of noise.
    assert ("persons or more rated errs by less than items differ" in shown) is (said != "enough")
    exactly = command("forecast", "ratings", *asked, "--epsilon", "inf").out
    assert exactly.startswith(OF_AVERAGES[exact])
    # Both errors in the units of ratings; and what would be enough.
    assert re.search(
        r"differ by 0\.4 \(--deviation\).*\n.* rated as often as others: [\d.]+, of which", shown
    )
    helps = "Averages of most items are expected to be told apart with about"
    assert (helps in shown) is (said != "enough")
    # No model is sold for what a person's own average does.
    own = float(re.search(r"own average, nothing released +(\S+)\n", shown)[1])
    sought = command("forecast", "ratings", *asked, "--find", "persons", "--error", own, status=2)
    said = rf"error: --error must be below {own:g}: if .* 1 from .*\(--deviation\), each person's"
    assert re.match(said, sought.err)
    reached = ("--deviation", 1.5, "--find", "epsilon", "--error", 1.35)
    wider = command("forecast", "ratings", *asked, *reached).out
    assert ("A typical error of 1.35 from --epsilon" in wider) is (persons > 9)
    found = re.search(r"rated as often as others: ([\d.]+), of which", wider)
    least = re.search(r"averages of items too +([\d.]+)\n", wider)
    assert (float(found[1]) < 0.7) if persons > 9 else float(least[1]) > 1.35


@pytest.mark.parametrize(("bounds", "error"), [((0, 1), 0.024), ((1, 2), 0.024), ((0, 2), 0.028)])
def test_two_values_vary_by_half_of_their_range(command, bounds, error):
    """Averages of 40 questions by 4,000 drawn persons of 20 answers erred by .02 of the range."""
    asked = ("--persons", 4000, "--items", 40, "--epsilon", 1, "--rank", 0, "--bounds", *bounds)
    shown = command("forecast", "ratings", *asked).out
    assert "if ratings are typically 0.5 away from their average, and items differ" in shown
    assert re.search(r"the average of all ratings \(assumed, --deviation\) +0\.5\n", shown)
    assert "Two answers" in shown
    given = command("forecast", "ratings", *asked, "--deviation", 0.5).out
    assert re.search(r"the average of all ratings +0\.5\n", given)
    assert "Two answers" not in given
    assert f"rated as often as others: {error}, of which" in " ".join(shown.split())


def test_answers_about_averages_are_for_rows_by_chance(command):
    """Of waves of a panel, 1,000 persons cannot tell how they compare 40 items; 2,800 can."""
    asked = ("--items", 40, "--bounds", 0, 4, "--each", 14, "--rank", 0, "--epsilon", 2)
    few = command("forecast", "ratings", *asked, "--persons", 1000).out
    assert re.search(
        r"items are as by chance, not for those who .* panel; from about 1,\d00 p", few
    )
    more = command("forecast", "ratings", *asked, "--persons", 2800).out
    assert "as waves of a rotating panel, they are several times larger, or need" in more
    # What that takes away is said in the forecast, also where a guess of more ratings hides it.
    assert "item_differences.csv will have no intervals, and will not say which" in few
    assert "It has them with about 1," in few
    assert "no intervals" not in more
    each = ("--each", 20, *asked[:5], "--rank", 0, "--epsilon", 1, "--persons", 1000)
    doubtful = command("forecast", "ratings", *each).out
    assert "are clear, if persons rate about 10 items each: noise hides" in doubtful
    found = command("forecast", "ratings", *asked, "--find", "persons", "--average-error", 0.05)
    answer = found.out.splitlines()[-1]
    assert "rated as often as others, by persons whose items are as by chance, from --per" in answer


def test_a_forecast_for_persons_who_stay_says_where_changes_are_lost(command):
    asked = ("--items", 12, "--bounds", 1, 5, "--rank", 0, "--stays", 3)
    few = command("forecast", "ratings", *asked, "--persons", 900, "--epsilon", 1).out
    said = "changes will come out several times too small, and errors do not say all of it"
    assert few.startswith("Likely too few: ")
    assert re.search(rf"{said}, .* from about 1,\d00 persons or epsilon 1\.\d+ on this is", few)
    more = command("forecast", "ratings", *asked, "--persons", 3000).out
    assert "(3,000 persons at epsilon 4; assumed: ratings of 3 items next to each other, -" in more
    change = re.search(r"stay in 3 next to each .* first to the last errs by ([\d.]+)\.", more)
    assert 0.2 < float(change[1]) < 0.4
    sought = ("--find", "persons", "--average-error")
    # Errors that noise makes too small, of fewer persons, are no answer.
    for error in (0.1, 0.2, 0.5):
        found = command("forecast", "ratings", *asked, *sought, error, "--epsilon", 1).out
        answer = re.search(r"who rate 3 items next to .* from --persons (\d+) on at", found)
        assert int(answer[1]) > 1500
    wide = command("forecast", "ratings", *asked[:-1], 12, "--persons", 900, status=2)
    assert "--stays N must be less than the number of items, 12" in wide.err
    both = command("forecast", "ratings", *asked, "--each", 3, "--persons", 900, status=2)
    assert "--stays N is in place of --each N: give one" in both.err


def test_a_forecast_of_ratings_says_what_directions_cost(command):
    asked = ("--bounds", 1, 5, "--epsilon")
    larger = ("--persons", 3000, "--items", 300, *asked)
    sought_anyway = "Directions are sought all the same"  # others may have more ratings each
    few = ("--persons", 50, "--items", 100, *asked, "inf")
    # Without noise a search takes nothing from averages.
    assert f"{sought_anyway}.\n" in command("forecast", "ratings", *few).out
    assert NONE_SOUGHT in command("forecast", "ratings", *larger, 3).out
    shown = command("forecast", "ratings", *larger, 4).out
    assert f"{sought_anyway}: " in shown
    # Strong directions are found where one of the assumed size is not, and averages pay for it.
    errors = re.search(r"by about (\S+) if none is found, by (\S+) if some are", shown)
    assert float(errors[2]) > 1.3 * float(errors[1])
    enough = command("forecast", "ratings", "--persons", 9000, *larger[2:], 20).out
    assert "may be enough for up to 2 directions in which persons differ, if" in enough
    assert "hold 0.08 of the variance of ratings, in equal parts (9,000 persons" in enough
    least = re.search(r"if directions hold (\S+) of .* or more \(0\.08 is assumed\)", shown)
    assert 0.08 < float(least[1]) < 0.6
    weak = command("forecast", "ratings", *larger, 0.5).out
    assert "too few for one direction in which persons differ (3,000 persons" in weak
    strong = command("forecast", "ratings", *larger, 4, "--direction-share", 0.6).out
    assert "may be enough for up to 3 directions in which persons differ, if" in strong
