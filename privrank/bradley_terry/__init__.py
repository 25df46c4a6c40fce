"""The Bradley-Terry model fitted to a release: losses, fits, covariances, contrasts, covariates."""
