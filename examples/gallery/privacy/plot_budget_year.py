"""
How do I keep a privacy budget over a year?
===========================================

Put a :class:`~sktensor_dp.BudgetAccountant` in a file and give it to
every fit. It adds up what all of them cost together, and refuses the
fit that would cost too much.
"""

# %%
# Why results add up
# ------------------
#
# **Epsilon** limits what one result tells about one person. Two results
# about the same people tell more than one. So a promise is worth
# something only if it covers all results together: that is the budget.
# It is decided once, before the first fit.
#
# Here epsilon = 4 shall last for twelve monthly reports on the same
# 20,000 employees.

import tempfile
from pathlib import Path

from sktensor_dp import BudgetAccountant

folder = tempfile.TemporaryDirectory()
file = Path(folder.name) / "budget.sqlite"

budget = BudgetAccountant(
    epsilon=4.0, delta=1e-6, path=file, scope="employees"
)
each = budget.remaining(12)
print(f"each of twelve fits may have {each}")

# %%
# That is three times as much as a twelfth of 4. Gaussian noise of
# different fits is independent, so the worst cases of all fits
# practically never meet. The accountant computes that exactly.
# Completions of ratings have pure noise, whose costs add up:
# ``budget.remaining(12, kind="pure")`` is a twelfth of 4.
#
# A year of reports
# -----------------
#
# Each month is another run of the program. It opens the file again,
# which still knows what was spent. A fit is charged before it computes
# anything of the data.

import numpy as np

from sktensor_dp import PrivateSpectralLDA

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(50, 0.1), size=3)

spent = [0.0]
for _month in range(12):
    shares = rng.dirichlet(np.full(3, 0.3), size=20_000)
    comments = rng.multinomial(20, shares @ topics)
    budget = BudgetAccountant(path=file, scope="employees")
    PrivateSpectralLDA(3, **each, accountant=budget).fit(comments)
    spent.append(budget.total()[0])

# %%
# The thirteenth report
# ---------------------
#
# Nothing is left. The fit is refused, and has read nothing:

from sktensor_dp import BudgetError

try:
    PrivateSpectralLDA(3, **each, accountant=budget).fit(comments)
except BudgetError as refusal:
    print(refusal)

# %%
# The picture compares what the year has cost with the plain sum of all
# epsilons, which is also a valid bound, but a needlessly large one.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

months = np.arange(13)
figure, axis = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
axis.plot(
    months,
    months * each["epsilon"],
    "--",
    color="C5",
    label="plain sum of all epsilons",
)
axis.plot(
    months,
    spent,
    "o-",
    color="C0",
    label="what all reports cost together",
)
axis.axhline(4, color="C3", linewidth=1)
axis.annotate(
    "the budget",
    (0, 4),
    xytext=(0, 4),
    textcoords="offset points",
    color="C3",
)
axis.set(
    xlabel="monthly reports made",
    ylabel="epsilon",
    ylim=(0, None),
    xticks=months,
)
axis.spines[["top", "right"]].set_visible(False)
axis.legend(frameon=False, loc="upper left")
plt.show()

# %%
# Who asks later can look the charges up. ``sktensor-dp budget show
# budget.sqlite`` prints the same in a terminal.

print(len(budget.entries), "charges; the last four:")
for entry in budget.entries[-4:]:
    print(f"  {entry.spender}: {entry.release}")

folder.cleanup()

# %%
# What it costs
# -------------
#
# Epsilon = 4 for each employee over the whole year, whatever anyone
# knows of the other reports. Next year needs a new decision: the old
# results do not go away, so a new budget for the same people comes on
# top.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/budget`: files, and what can go wrong.
# - :doc:`/guarantee`: how costs compose.
# - :class:`~sktensor_dp.BudgetAccountant`: ``remaining``, ``split``,
#   ``spend`` and ``total``.
