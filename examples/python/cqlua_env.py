"""Environments of cqlua in Python: a process `cqlua env SCRIPT`, where the script returns a cq.Env.

    envs = VectorEnv("examples/walker_env.lua", "--scenes", "64")     # gymnasium.vector.VectorEnv
    env = Env("examples/walker_env.lua")                              # gymnasium.Env, of one scene
    model = stable_baselines3.PPO("MlpPolicy", for_stable_baselines3(envs))

Needs numpy and gymnasium. The program is `cqlua` on PATH, the environment variable CQLUA, or the argument cqlua.
The frames are described in docs/python.md.
"""
import json
import os
import shutil
import struct
import subprocess

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode

PROTOCOL = 1
HEAD = struct.Struct("<8sQ")  # name, bytes that follow


class Server:
    """A process of cqlua, which is asked one thing at a time."""

    def __init__(self, script, arguments, cqlua):
        program = cqlua or os.environ.get("CQLUA") or shutil.which("cqlua")
        if not program:
            raise FileNotFoundError("cqlua was not found: put it on PATH, or give its path as CQLUA or cqlua=...")
        # a session of its own: Ctrl-C is for Python, and cqlua ends with its input
        self.process = subprocess.Popen([program, "env", script, *map(str, arguments)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, start_new_session=True)
        self.facts = json.loads(self.ask("hello", struct.pack("<Q", PROTOCOL)))
        if self.facts["protocol"] != PROTOCOL:
            self.close()
            raise RuntimeError(f"cqlua {self.facts['cqlua']} speaks version {self.facts['protocol']} of the frames and "
                               f"this cqlua_env.py version {PROTOCOL}: take the file that came with this cqlua")

    # `count` bytes of the process's output; EOFError where it ends before
    def read(self, count):
        data = self.process.stdout.read(count)
        if len(data) < count:
            raise EOFError
        return data

    # The bytes that answer a frame. RuntimeError: cqlua answered by an error, or by no frame, or ended; in the last two
    # cases the process is closed.
    def ask(self, name, data=b""):
        try:
            self.process.stdin.write(HEAD.pack(name.ljust(8).encode(), len(data)) + data)
            self.process.stdin.flush()
            said, count = HEAD.unpack(self.read(HEAD.size))
            reply = self.read(count) if said.strip() in (name.encode(), b"error") else None
        except (EOFError, BrokenPipeError, ValueError):
            self.close()
            code = self.process.returncode
            how = f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"
            raise RuntimeError(f"cqlua {how} before it answered {name}; what it said is on standard error") from None
        if reply is None:
            self.process.kill()
            self.close()
            raise RuntimeError(f"cqlua answered {name} by {said!r}, which is no frame")
        if said.strip() == b"error":
            if name == "hello":
                self.close()
            raise RuntimeError(reply.decode())
        return reply

    # Ends the process by the end of its input, and waits for it.
    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it had ended before it read all
            pass
        self.process.stdout.close()
        self.process.wait()


class VectorEnv(gymnasium.vector.VectorEnv):
    """The scenes of a cq.Env. A scene that ends begins again in the same step: infos["final_obs"] has its last
    observation, infos["episode"] its return and length, and infos["failed"] tells that its simulation failed."""

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP, "render_modes": []}

    def __init__(self, script, *arguments, cqlua=None):
        self.server = Server(script, arguments, cqlua)
        facts = self.server.facts
        self.num_envs, self.size, self.steps = facts["scenes"], facts["observations"], facts["steps"]
        self.single_observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (self.size,), np.float32)
        self.single_action_space = gymnasium.spaces.Box(-1, 1, (facts["actions"],), np.float32)
        self.observation_space = gymnasium.vector.utils.batch_space(self.single_observation_space, self.num_envs)
        self.action_space = gymnasium.vector.utils.batch_space(self.single_action_space, self.num_envs)

    # an array {scenes, observations} of single precision, from bytes of a frame
    def observations(self, data):
        return np.frombuffer(data, "<f8").reshape(self.num_envs, self.size).astype(np.float32)

    # Begins all scenes again: observations {scenes, size}, and no infos. options are not read.
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observations(self.server.ask("reset", b"" if seed is None else struct.pack("<q", seed))), {}

    # One step of all scenes for actions {scenes, signals}: observations, rewards, terminated, truncated, infos.
    # ValueError: another shape.
    def step(self, actions):
        actions = np.asarray(actions, "<f8")
        if actions.shape != self.action_space.shape:
            raise ValueError(f"actions must have the shape {self.action_space.shape}, a row for each scene, "
                             f"got {actions.shape}")
        data, n, row = self.server.ask("step", actions.tobytes()), self.num_envs, 8 * self.num_envs * self.size
        last = self.observations(data[row + 24 * n:2 * row + 24 * n])
        reward, terminated, truncated = np.frombuffer(data[row:row + 24 * n], "<f8").reshape(3, n).copy()
        failed, total, length = np.frombuffer(data[2 * row + 24 * n:], "<f8").reshape(3, n)
        terminated, truncated, infos = terminated > 0, truncated > 0, {"failed": failed > 0}
        done = terminated | truncated
        if done.any():
            final = np.full(n, None, object)
            for k in np.flatnonzero(done):
                final[k] = last[k]
            infos |= {"final_obs": final, "_final_obs": done.copy(), "_episode": done.copy(),
                      "episode": {"r": np.where(done, total, 0), "l": np.where(done, length, 0).astype(int)}}
        return self.observations(data[:row]), reward, terminated, truncated, infos

    def close_extras(self, **kwargs):
        self.server.close()


class Env(gymnasium.Env):
    """One scene of a cq.Env, whose script takes --scenes."""

    metadata = {"render_modes": []}

    def __init__(self, script, *arguments, cqlua=None):
        self.vector, self.begun = VectorEnv(script, *arguments, "--scenes", "1", cqlua=cqlua), None
        if self.vector.num_envs != 1:
            self.close()
            raise ValueError(f"{script} made {self.vector.num_envs} scenes and not one: "
                             "let it have scenes = cq.option(\"scenes\", ...)")
        self.observation_space = self.vector.single_observation_space
        self.action_space = self.vector.single_action_space

    # The first observation and no infos; with a seed the scene begins anew even where it has just done so.
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        # the scene has begun again already where its episode has ended
        z, self.begun = self.begun, None
        return (self.vector.reset(seed=seed)[0][0] if z is None or seed is not None else z), {}

    # One step: the observation, at the end of an episode its last one, reward, terminated, truncated, and infos with
    # "failed".
    def step(self, action):
        z, reward, terminated, truncated, infos = self.vector.step(np.asarray(action)[None])
        done = bool(terminated[0] or truncated[0])
        self.begun = z[0] if done else None
        z = infos["final_obs"][0] if done else z[0]
        return z, float(reward[0]), bool(terminated[0]), bool(truncated[0]), {"failed": bool(infos["failed"][0])}

    def close(self):
        self.vector.close()


def for_stable_baselines3(envs):
    """A VectorEnv as Stable-Baselines3 has them; all that is scenes of one process."""
    from stable_baselines3.common.vec_env import VecEnv

    class Scenes(VecEnv):
        def reset(self):
            seed, self._seeds = self._seeds[0], [None] * envs.num_envs
            return envs.reset(seed=seed)[0]

        def step_async(self, actions):
            self.actions = actions

        def step_wait(self):
            z, reward, terminated, truncated, infos = envs.step(self.actions)
            rows = [{} for _ in range(envs.num_envs)]
            for k in np.flatnonzero(terminated | truncated):
                rows[k] = {"terminal_observation": infos["final_obs"][k], "TimeLimit.truncated": bool(truncated[k]),
                           "episode": {"r": infos["episode"]["r"][k], "l": infos["episode"]["l"][k]}}
            return z, reward.astype(np.float32), terminated | truncated, rows

        def close(self):
            envs.close()

        def get_attr(self, attr_name, indices=None):
            return [getattr(envs, attr_name)] * len(list(self._get_indices(indices)))

        def set_attr(self, attr_name, value, indices=None):
            raise NotImplementedError("the scenes of cqlua have no attributes to set")

        def env_method(self, method_name, *args, indices=None, **kwargs):
            raise NotImplementedError(f"the scenes of cqlua have no method {method_name}")

        def env_is_wrapped(self, wrapper_class, indices=None):
            return [False] * len(list(self._get_indices(indices)))

    return Scenes(envs.num_envs, envs.single_observation_space, envs.single_action_space)
