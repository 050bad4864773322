import numpy as np
import pytest
from scipy.stats import pearsonr
from sklearn.metrics import accuracy_score, f1_score, log_loss, matthews_corrcoef

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.metrics import label_score
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import MetricSettings
from attention_sieve.core.texts.text import Text

CLASSES = np.array([0, 2, 1, 1, 0, 2, 1], float)
LOGITS = np.random.default_rng(0).normal(size=(7, 2, 3))
"""[text head class]"""


def by_sklearn(name, classes, logits):
    predicted, n_classes = logits.argmax(-1), logits.shape[-1]
    if name == "loss":
        shares = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        return log_loss(classes, shares, labels=range(n_classes))
    if name == "f1":
        average = "binary" if n_classes == 2 else "macro"
        return f1_score(classes, predicted, labels=range(n_classes), average=average, zero_division=0)
    return {"accuracy": accuracy_score, "matthews": matthews_corrcoef}[name](classes, predicted)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ["accuracy", "loss", "matthews", "f1"])
def test_scores_of_classes_are_those_of_scikit_learn(name, n_classes):
    classes, logits = np.minimum(CLASSES, n_classes - 1), LOGITS[..., :n_classes]
    found = label_score(name, classes, n_classes).of(logits)
    expected = [by_sklearn(name, classes, logits[:, head]) for head in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_matthews_of_one_predicted_class_is_0():
    assert label_score("matthews", CLASSES, 3).of(np.tile([1.0, 0, 0], (7, 1))) == 0


def test_scores_of_a_regression_are_those_of_scipy(chance):
    values, labels = LOGITS[..., :1], chance.normal(100, 1, size=7)
    found = label_score("pearson", labels, 0).of(values)
    np.testing.assert_allclose(found, [pearsonr(values[:, head, 0], labels)[0] for head in range(2)], rtol=1e-10)
    squares = label_score("loss", labels, 0).of(values)
    np.testing.assert_allclose(squares, np.square(values[..., 0] - labels[:, None]).mean(0))
    of_constants = np.stack([np.full((7, 1), value) for value in chance.normal(100, 1, size=50)], axis=1)
    assert np.isnan(label_score("pearson", labels, 0).of(of_constants)).all()


def test_a_score_that_the_labels_do_not_have_is_refused():
    with pytest.raises(AnalysisError, match=r"The labels are classes, which have no score pearson. Choose accuracy"):
        label_score("pearson", CLASSES, 3)
    with pytest.raises(AnalysisError, match=r"values of a regression, which have no score f1. Choose pearson or loss"):
        label_score("f1", CLASSES, 0)


def test_texts_without_labels_have_no_score_by_labels():
    with pytest.raises(AnalysisError, match="The metric labels needs labels"):
        MetricSettings(metric="labels").score_of([LabelledText(Text(("a cat",)))])
