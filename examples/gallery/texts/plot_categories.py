"""
Which categories may be named?
==============================

A one-hot encoding has a column for every category that anyone has, and
a rare one gives its owner away. Here only those are named that many
people share.
"""

# %%
# Towns of patients
# -----------------
#
# 5,000 patients of made-up towns. Large towns have many patients, the
# smallest one has a single one.

import numpy as np
import pandas as pd

rng = np.random.default_rng(0)
towns = np.array([f"town {rank}" for rank in range(1, 201)])
share = 1 / np.arange(1, 201)
patients = pd.DataFrame(
    {
        "town": rng.choice(towns, 5000, p=share / share.sum()),
        "ward": rng.choice(["north", "south"], 5000),
    }
)
numbers = patients["town"].value_counts()
print(f"{(numbers < 3).sum()} towns have one or two patients.")

# %%
# Encode them
# -----------
#
# :class:`~sktensor_dp.PrivateOneHotEncoder` finds the categories of all
# columns together, within one epsilon.

from sktensor_dp import PrivateOneHotEncoder

encoder = PrivateOneHotEncoder(epsilon=1.0).fit(patients)
found, wards = encoder.categories_
print(f"{len(found)} towns are named, from about")
print(f"{encoder.threshold_:.0f} patients on; wards: {list(wards)}")

# %%
# Patients of other towns are encoded as zeros. What is named would be
# nearly the same if any one of the patients had not been there.

import matplotlib.pyplot as plt

plt.style.use("tableau-colorblind10")

named = numbers.index.isin(found)
figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
place = np.arange(1, len(numbers) + 1)
axis.plot(place[named], numbers[named], ".", label="named")
axis.plot(place[~named], numbers[~named], ".", label="left out")
axis.axhline(encoder.threshold_, color="0.4", linestyle="--")
axis.set(
    yscale="log",
    xlabel="towns, the largest first",
    ylabel="patients (people)",
)
axis.legend(frameon=False)
axis.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# What it costs
# -------------
#
# **Epsilon** is a limit on odds: whatever somebody concludes from the
# named towns, one patient changes the odds of it by a factor of at most
# e^epsilon, nearly always. Here epsilon = 1 for all columns together.
#
# Read next
# ---------
#
# - :doc:`/gallery/privacy/plot_epsilon_as_odds`: what epsilon means, in
#   pictures.
# - :doc:`/gallery/texts/plot_count_words`: the same votes for words.
# - :doc:`/vocabulary`: how many words or categories to expect.
# - :class:`~sktensor_dp.PrivateOneHotEncoder`: all parameters.
