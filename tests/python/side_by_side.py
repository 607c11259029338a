"""side_by_side: cq.Learner.ppo and PPO of Stable-Baselines3 on examples/walker_env.lua, with the same settings.

    make python-check                                                       # makes the environment of packages
    CQLUA=build/cqlua build/python/venv/bin/python tests/python/side_by_side.py FOLDER

5 seeds of 102,400 steps each, by turns; goes on where it stopped.
Writes FOLDER/NAME-SEED.csv, a line for each batch of 2,048 steps: steps and mean return of the episodes that ended in
it. Prints the mean return over the last 10 batches of each seed, and medians.
"""
import csv
import pathlib
import statistics
import subprocess
import sys
import os
import time

import stable_baselines3
import torch
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import VecNormalize

sys.path.insert(0, "examples/python")
from cqlua_env import VectorEnv, for_stable_baselines3  # noqa: E402

WALKER, BATCH, STEPS, SEEDS, LAST = "examples/walker_env.lua", 2048, 50 * 2048, range(1, 6), 10


class Returns(BaseCallback):
    """Notes the mean return of the episodes that end in each batch, before rewards are scaled."""

    def __init__(self):
        super().__init__()
        self.ended, self.rows = [], []

    def _on_step(self):
        self.ended += [info["episode"]["r"] for info in self.locals["infos"] if "episode" in info]
        return True

    def _on_rollout_end(self):
        self.rows.append((self.num_timesteps, sum(self.ended) / len(self.ended) if self.ended else float("nan")))
        self.ended = []


def by_stable_baselines3(seed, path):
    envs = VecNormalize(for_stable_baselines3(VectorEnv(WALKER, "--threads", 1)), gamma=0.99, clip_obs=10)
    # cq.Learner.ppo halves the squared error of the value twice; clip_range_vf and eps are its own, too
    model = stable_baselines3.PPO(
        "MlpPolicy", envs, n_steps=BATCH // envs.num_envs, batch_size=64, n_epochs=10, gamma=0.99, gae_lambda=0.95,
        learning_rate=lambda left: 3e-4 * left, clip_range=0.2, clip_range_vf=0.2, ent_coef=0, vf_coef=0.25,
        max_grad_norm=0.5, seed=seed, device="cpu")
    returns = Returns()
    model.learn(STEPS, callback=returns)
    envs.close()
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("steps", "return"), *returns.rows])


def by_cqlua(seed, path):
    folder = path.with_suffix("")
    subprocess.run([os.environ["CQLUA"], "examples/walker_ppo.lua", "--out", folder, "--seed", str(seed), "--iterations",
                    str(STEPS // BATCH), "--threads", "1", "--quiet", "--overwrite", "--render", "no"], check=True)
    with open(folder / "history.csv") as file:
        rows = [(row["steps"], row["episode_return"]) for row in csv.DictReader(file)]
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([("steps", "return"), *rows])


def last_of(path):
    with open(path) as file:
        returns = [float(row["return"]) for row in csv.DictReader(file)]
    return statistics.mean(returns[-LAST:])


def main(folder):
    torch.set_num_threads(1)
    folder.mkdir(parents=True, exist_ok=True)
    learners = {"cqlua": by_cqlua, "sb3": by_stable_baselines3}
    reached = {name: [] for name in learners}
    for seed in SEEDS:
        for name, train in learners.items():
            path, start = folder / f"{name}-{seed}.csv", time.time()
            if not path.exists():
                train(seed, path)
            reached[name].append(last_of(path))
            print(f"{name:6} seed {seed}: {reached[name][-1]:.3f} in {time.time() - start:.0f} s", flush=True)
    for name, values in reached.items():
        print(f"{name:6} median {statistics.median(values):.3f}, from {min(values):.3f} to {max(values):.3f}")


main(pathlib.Path(sys.argv[1]))
