"""What every estimator is made of."""
