"""Topics of counts from released moments: what two estimators share."""
