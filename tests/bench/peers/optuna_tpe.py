# optuna_tpe: Optuna's TPE on the functions of tests/bench/study.lua, for tests/bench/README.md; with Debian's
# python3-optuna.
#   /usr/bin/python3 optuna_tpe.py rosenbrock|hartmann [--trials 200] [--seed 1] [--store FILE]
# Without a store a trial is a call, and nothing is kept. Prints the best, and milliseconds a trial without the start of
# Python.
import argparse
import math
import time

import optuna

A = [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
P = [[0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991],
     [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]]
WEIGHTS = [1, 1.2, 3, 3.2]


def hartmann(trial):
    x = [trial.suggest_float(f"x{j + 1}", 0, 1) for j in range(6)]
    return -sum(w * math.exp(-sum(a[j] * (x[j] - p[j]) ** 2 for j in range(6))) for w, a, p in zip(WEIGHTS, A, P))


def rosenbrock(trial):
    x, y = trial.suggest_float("x1", -2, 2), trial.suggest_float("x2", -2, 2)
    return 100 * (y - x ** 2) ** 2 + (1 - x) ** 2


parser = argparse.ArgumentParser()
parser.add_argument("function", choices=["rosenbrock", "hartmann"])
parser.add_argument("--trials", type=int, default=200)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--store")
given = parser.parse_args()

optuna.logging.set_verbosity(optuna.logging.WARNING)
began = time.time()
study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=given.seed),
                            storage=f"sqlite:///{given.store}" if given.store else None)
study.optimize(globals()[given.function], n_trials=given.trials)
print(f"best {study.best_value:.4g}, {(time.time() - began) / given.trials * 1e3:.2f} ms a trial")
