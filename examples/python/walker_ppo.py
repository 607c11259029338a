"""Trains examples/walker_env.lua by PPO of Stable-Baselines3, with its settings for continuous actions.

    pip install stable-baselines3
    CQLUA=build/cqlua python3 examples/python/walker_ppo.py [steps]
"""
import pathlib
import sys

import torch
from stable_baselines3 import PPO

from cqlua_env import VectorEnv, for_stable_baselines3

torch.set_num_threads(1)  # the networks are small, and cqlua needs the cores
script = pathlib.Path(__file__).parent.parent / "walker_env.lua"
envs = for_stable_baselines3(VectorEnv(str(script), "--scenes", 16))
model = PPO("MlpPolicy", envs, n_steps=128, batch_size=64, n_epochs=10, seed=1,
            device="cpu", verbose=1)
model.learn(int(sys.argv[1]) if len(sys.argv) > 1 else 50_000)
model.save("walker_ppo.zip")
envs.close()
