"""Questions of readers are answered within two clicks from the front page.

The section that the list of questions links to has the words without which it is no answer.
"""

import re
from itertools import pairwise
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"

# What a reader asks, and words of the answer.
QUESTIONS = {
    "What is this for?": ["model", "noise"],
    "Is it for my data?": ["texts", "ratings", "measurements"],
    "How much data is enough?": ["forecast", "epsilon = 1"],
    "Why is it not enough to remove names?": ["Rare words"],
    "Whom does it not protect?": ["not protect them from **you**"],
    "What does epsilon mean?": ["odds"],
    "Which epsilon should I choose?": ["forecast", "unit"],
    "Which epsilon did others use?": ["Census", "Apple", "Google"],
    "What is delta, and how small should it be?": ["one over the number of people"],
    "May I run it again tomorrow?": ["costs again", "budget"],
    "Is the number of documents secret?": ["add_remove", "number is public"],
    "A person has several rows: what then?": ["groups="],
    "What happens when the budget is used up?": ["costs nothing"],
    "What is not covered?": ["Running time"],
    "Can I give the model to someone else?": ["no code", "publish"],
    "May I show the topics of each document?": ["whoever may see the texts"],
    "How many topics should I ask for?": ["forecast"],
    "What if texts are in two languages?": ["a topic of its own", "by language"],
    "How do I compare settings?": ["PrivateSearchCV"],
    "Which persons write alike?": ["part of the budget", "groups=people"],
    "How do I compare the averages of two years?": ["add up", "squared half-widths"],
    "How good are the results, measured?": ["python -m benchmarks"],
    "How do I convince a data protection officer?": ["NIST", "check"],
    "Who says that it is right?": ["tests attack"],
    "How can I check it myself?": ["audit"],
    "How do I report a hole?": ["private vulnerability reporting"],
    "My data does not fit into memory": ["fit_chunks"],
    "Several colleagues use the same data": ["path="],
    "What do I write in a paper or a report?": ["epsilon, delta"],
}
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")


def links(page: Path) -> dict[str, str]:
    return dict(LINK.findall(page.read_text(encoding="utf-8")))


def slug(title: str) -> str:
    return re.sub(r"[^a-z0-9 -]", "", title.lower()).replace(" ", "-").strip("-")


def section(page: Path, anchor: str) -> str:
    lines = page.read_text(encoding="utf-8").splitlines()
    if not anchor:
        return "\n".join(lines)
    found: list[str] = []
    level = 0
    for before, line in pairwise(["", *lines]):
        heading = re.match(r"(#+) (?:\d+\. )?(.*)", line)
        if heading and level and len(heading[1]) <= level:
            break
        if heading and (slug(heading[2]) == anchor or before.strip() == f"({anchor})="):
            level = len(heading[1])
        if level:
            found.append(line)
    return "\n".join(found)


def test_answers_are_two_clicks_away() -> None:
    assert "questions.md" in links(DOCS / "index.md").values()
    asked, missing = links(DOCS / "questions.md"), []
    for question, answer in QUESTIONS.items():
        target, _, anchor = asked[question].partition("#")
        found = section(DOCS / target, anchor)
        missing += [(question, words) for words in answer if words not in found]
    assert missing == []


def test_the_list_of_questions_asks_nothing_that_is_not_checked() -> None:
    # Those whose page is the answer by its title.
    assert set(links(DOCS / "questions.md")) - set(QUESTIONS) == {
        "Why did it warn that there is not enough data?",
        "What did the papers get wrong?",
        "I know the words beforehand",
        "What does this word mean?",
    }
