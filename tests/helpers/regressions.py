"""Logistic regression by scikit-learn, to hold probes against."""

from sklearn.linear_model import LogisticRegression


def regression(strength, **options):
    """Solved by Newton steps: to this tolerance the line search of the usual solver fails on some processors."""
    return LogisticRegression(C=1 / strength, solver="newton-cholesky", tol=1e-9, max_iter=10_000, **options)
