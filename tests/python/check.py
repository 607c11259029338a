"""check: cqlua_env.py by Gymnasium's check_env, 10,000 steps of PPO of Stable-Baselines3, and what goes wrong."""
import os
import pathlib
import stat
import sys
import tempfile
import time
import warnings

import gymnasium
import numpy as np
import stable_baselines3
import torch
from gymnasium.utils.env_checker import check_env
from stable_baselines3.common.env_checker import check_env as check_for_sb3
from stable_baselines3.common.vec_env import VecMonitor

sys.path.insert(0, "examples/python")
from cqlua_env import Env, VectorEnv, for_stable_baselines3  # noqa: E402

WALKER = "examples/walker_env.lua"


def fails(sentence, call, kind=RuntimeError):
    try:
        call()
    except kind as error:
        assert sentence in str(error), f"{sentence!r} is not in {error}"
        return
    raise AssertionError(f"no error, one was expected with: {sentence}")


def one_scene():
    # of a space without bounds both checks say that it has none
    warnings.filterwarnings("ignore", message=".*Box observation space m.* value is -?infinity.*")
    env = Env(WALKER)
    check_env(env, skip_render_check=True)
    check_for_sb3(env, skip_render_check=True)
    first, _ = env.reset(seed=3)
    for k in range(100):
        last, _, terminated, truncated, _ = env.step(env.action_space.sample())
    assert truncated and not terminated
    begun, _ = env.reset()
    assert np.abs(begun - last).max() > 1e-3 and np.abs(begun[:14] - first[:14]).max() < 1e-6
    env.close()
    env.close()


def many_scenes():
    envs, other = VectorEnv(WALKER, "--scenes", 4), VectorEnv(WALKER, "--scenes", 4)
    assert envs.observation_space.shape == (4, 28) and envs.action_space.shape == (4, 4)
    z, infos = envs.reset(seed=1)
    assert z in envs.observation_space and infos == {}
    other.reset(seed=1)
    envs.action_space.seed(2)
    total = np.zeros(4)
    for k in range(100):
        u = envs.action_space.sample()
        z, reward, terminated, truncated, infos = envs.step(u)
        again = other.step(u)
        assert (z == again[0]).all() and (reward == again[1]).all()
        total += reward
    assert truncated.all() and not terminated.any() and not infos["failed"].any()
    assert np.abs(infos["episode"]["r"] - total).max() < 1e-12 and (infos["episode"]["l"] == 100).all()
    assert infos["_final_obs"].all() and infos["final_obs"][3].shape == (28,)
    assert np.abs(infos["final_obs"][3] - z[3]).max() > 1e-3
    fails("actions must have the shape (4, 4), a row for each scene, got (3, 4)", lambda: envs.step(np.zeros((3, 4))),
          ValueError)
    fails("actions must be finite, got nan in scene 1", lambda: envs.step(np.full((4, 4), np.nan)))
    envs.step(u)
    envs.server.process.kill()
    fails("cqlua was ended by signal 9 before it answered step", lambda: envs.step(u))
    envs.close()
    other.close()


def script(folder, name, text):
    path = pathlib.Path(folder) / name
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def what_goes_wrong():
    with tempfile.TemporaryDirectory() as folder:
        fails("must return the cq.Env that is to be served, as return env; it returned 3",
              lambda: VectorEnv(script(folder, "three.lua", "return 3")))
        fails("broken.lua:1: no such body", lambda: VectorEnv(script(folder, "broken.lua", "error 'no such body'")))
        fails("No such file", lambda: VectorEnv(folder + "/none.lua"))
        fails("ended with exit code 3 before it answered hello",
              lambda: VectorEnv(script(folder, "exit.lua", "os.exit(3)")))
        fails("let it have scenes = cq.option", lambda: Env(script(
            folder, "many.lua", "local cq = require 'cq'\nlocal env = dofile '" + os.path.abspath(WALKER)
            + "'\nenv.scenes = 2\nreturn env")), ValueError)
        python = "#!" + sys.executable + "\nimport json, struct, sys\n"
        newer = script(folder, "newer", python + "sys.stdin.buffer.read(24)\nbody = json.dumps({'protocol': 2, 'cqlua': "
                       "'9.0'}).encode()\nsys.stdout.buffer.write(struct.pack('<8sQ', b'hello   ', len(body)) + body)\n")
        fails("cqlua 9.0 speaks version 2 of the frames and this cqlua_env.py version 1",
              lambda: VectorEnv(WALKER, cqlua=newer))
        talks = script(folder, "talks", python + "print('hello, this is something else')\nsys.stdin.read()\n")
        fails("which is no frame", lambda: VectorEnv(WALKER, cqlua=talks))
        path, os.environ["PATH"], program = os.environ["PATH"], folder, os.environ.pop("CQLUA")
        fails("cqlua was not found: put it on PATH", lambda: VectorEnv(WALKER), FileNotFoundError)
        os.environ["PATH"], os.environ["CQLUA"] = path, program


def ppo():
    torch.set_num_threads(1)  # the networks are small, and cqlua needs the cores
    envs = for_stable_baselines3(VectorEnv(WALKER))
    model = stable_baselines3.PPO("MlpPolicy", VecMonitor(envs), n_steps=128, batch_size=64, seed=1, device="cpu")
    start = time.time()
    model.learn(10_000)
    seconds, returns = time.time() - start, [episode["r"] for episode in model.ep_info_buffer]
    assert len(returns) == 96 and np.isfinite(returns).all(), returns
    first, last = np.mean(returns[:16]), np.mean(returns[-16:])
    print(f"PPO: {model.num_timesteps} steps in {seconds:.0f} s, return {first:.3f} at first and {last:.3f} at last")
    assert last > first
    envs.close()


print(f"gymnasium {gymnasium.__version__}, stable_baselines3 {stable_baselines3.__version__}")
for check in one_scene, many_scenes, what_goes_wrong, ppo:
    check()
    print(f"{check.__name__}: right")
