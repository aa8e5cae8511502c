from pathlib import Path

import numpy as np
import xgboost

random = np.random.default_rng(0)
rows = random.standard_normal((4000, 32), np.float32)
values = rows[:, 0] * rows[:, 1] + np.abs(rows[:, 2])
booster = xgboost.train({"max_depth": 6, "nthread": 1}, xgboost.DMatrix(rows, values), 500)
folder = Path("models/forest/1")
folder.mkdir(parents=True)
booster.save_model(folder / "model.ubj")
