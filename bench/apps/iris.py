from pathlib import Path

import joblib
from sklearn import datasets, svm

rows, classes = datasets.load_iris(return_X_y=True)
folder = Path("models")
folder.mkdir(parents=True)
joblib.dump(svm.SVC(gamma="scale").fit(rows, classes), folder / "model.joblib")
