"""A classifier as KServe serves files of scikit-learn, by a program that is in no package: `joblib.load`, `predict`."""

import argparse
from pathlib import Path

import joblib
from kserve import Model, ModelServer, model_server
from kserve.utils.utils import get_predict_input, get_predict_response


class Iris(Model):
    """Predicts with the model of a file."""

    def __init__(self, name, folder):
        super().__init__(name)
        self.folder = folder
        self.ready = False

    def load(self):
        self._model = joblib.load(self.folder / "model.joblib")
        self.ready = True
        return self.ready

    def predict(self, payload, headers=None):
        return get_predict_response(payload, self._model.predict(get_predict_input(payload)), self.name)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(parents=[model_server.parser])
    parser.add_argument("--model_dir", type=Path)
    options = parser.parse_args()
    model = Iris(options.model_name, options.model_dir)
    model.load()
    ModelServer().start([model])
