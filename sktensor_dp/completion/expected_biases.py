"""Biases of released values, shrunk towards what public features of rows say."""

from dataclasses import replace

import numpy as np

from sktensor_dp.completion.model_options import ModelOptions
from sktensor_dp.completion.own_entries import bias_scale, bias_variances
from sktensor_dp.queries.observed_entries import IndexSet
from sktensor_dp.tensor.cp_completion import CPCompletion
from sktensor_dp.tensor.row_effects import regressed
from sktensor_dp.tensor.tucker_completion import Model


def with_features(model: Model, entries: IndexSet, options: ModelOptions) -> Model:
    """The model, whose biases have prior means that are linear in the features of their rows."""
    for mode, features in enumerate(options.features_at(entries)):
        scale = bias_scale(model, entries, mode)
        if features is None or scale <= 0:
            continue
        # What the values said is the posterior without its prior, of mean 0.
        variances = bias_variances(model, entries, mode, model.noise_variance)
        variances = np.clip(variances, 1e-12 * scale, scale)
        precisions = 1 / variances - 1 / scale
        found = regressed(precisions, model.biases[mode] / variances, scale, features)
        biases = list(model.biases)
        biases[mode] = found.means
        if isinstance(model, CPCompletion):
            spreads, scales = list(model.bias_variances), np.array(model.bias_scales)
            spreads[mode], scales[mode] = found.variances, found.scale
            model = replace(model, biases=biases, bias_variances=spreads, bias_scales=scales)
        else:
            model = replace(model, biases=biases)
    return model
