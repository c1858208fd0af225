"""A user of scikit-learn: pipelines, searches, tables, clones."""

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.mixture import GaussianMixture
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from sktensor_dp import (
    BudgetAccountant,
    PrivateGaussianMixture,
    PrivateSearchCV,
    make_private_scorer,
)

rng = np.random.default_rng(0)
labels = rng.integers(3, size=15_000)
X = pd.DataFrame(5 * np.eye(3, 4)[labels] + rng.standard_normal((15_000, 4)), columns=list("abcd"))
budget = BudgetAccountant(epsilon=30.0, delta=1e-6)
mixture = PrivateGaussianMixture(3, data_norm=9.0, epsilon=0.5, delta=1e-8, random_state=0)

# A pipeline of a stateless step and a private one.
same = FunctionTransformer(feature_names_out="one-to-one")
pipeline = make_pipeline(same, clone(mixture).set_params(accountant=budget))
shares = pipeline.fit(X).predict_proba(X)
print(shares[:3].round(2))
print((pipeline.predict(X) == shares.argmax(axis=1)).all())

# scikit-learn's own search: every fit and every score is charged.
scorer = make_private_scorer("log_likelihood", bounds=(-20.0, 0.0), epsilon=0.5, accountant=budget)
grid = GridSearchCV(
    clone(mixture).set_params(accountant=budget), {"data_norm": [9.0, 200.0]}, cv=2,
    scoring=scorer, error_score="raise",
)  # fmt: skip
print(grid.fit(X).best_params_)

# One that is private as a whole, and charged once.
search = PrivateSearchCV(
    mixture, {"data_norm": [9.0, 10.0]}, score_bounds=(-20.0, 0.0), n_trials=2, epsilon=6.0,
    delta=1e-7, accountant=budget,
)  # fmt: skip
best = search.fit(X).best_estimator_
print(best.n_components_, "groups by the released gains")

public = GaussianMixture(3, covariance_type="spherical", random_state=0).fit(X)
print(f"score {best.score(X):.2f}, without privacy {public.score(X):.2f}")
print(budget)
