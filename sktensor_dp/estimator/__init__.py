"""Base of all private estimators: life of a fit, parameters, input, forecasts."""
