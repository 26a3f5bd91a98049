"""Records trajectories of Gymnasium's robots, for tests/gymnasium.rs.

    python record.py --gentle --out tests/data

Needs gymnasium[mujoco] with mujoco 3.17.0. One file a robot: a list of episodes, each with its first state, its actions
and what Gymnasium made of them. Stepping goes on after a termination. Driven hard, the cheetah is chaotic: a difference
in the last bit, as between two machines, grows to metres in 100 steps. --gentle drives it so that it does not.
"""

import argparse
import json
import pathlib

import gymnasium
import mujoco
import numpy

ROBOTS = {"hopper": "Hopper-v5", "walker2d": "Walker2d-v5", "halfcheetah": "HalfCheetah-v5"}
GENTLE = {"halfcheetah": 0.25}
MUJOCO = "3.17.0"


def actions_of(episode, steps, size, random):
    """Kinds of action by turns: white noise, slow swings with noise, and full force one way or the other."""
    noise = random.uniform(-1, 1, (steps, size))
    if episode % 3 == 0:
        return noise
    if episode % 3 == 1:
        phase = random.uniform(0, 2 * numpy.pi, size)
        swing = numpy.sin(numpy.arange(steps)[:, None] * random.uniform(0.05, 0.4, size) + phase)
        return numpy.clip(0.8 * swing + 0.2 * noise, -1, 1)
    return numpy.sign(noise)


def record(name, episode, steps, strength):
    env = gymnasium.make(name, max_episode_steps=steps + 1).unwrapped
    observation, _ = env.reset(seed=episode)
    random = numpy.random.default_rng(episode)
    actions = strength * actions_of(episode, steps, env.action_space.shape[0], random)
    result = {
        "qpos": env.data.qpos.tolist(),
        "qvel": env.data.qvel.tolist(),
        "actions": actions.tolist(),
        "observations": [observation.tolist()],
        "rewards": [],
        "terminated": [],
    }
    for action in actions:
        observation, reward, terminated, _, _ = env.step(action)
        result["observations"].append(observation.tolist())
        result["rewards"].append(float(reward))
        result["terminated"].append(bool(terminated))
    env.close()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=3)
    parser.add_argument("--gentle", action="store_true")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if mujoco.__version__ != MUJOCO:
        raise SystemExit(f"this is mujoco {mujoco.__version__}; install mujoco=={MUJOCO}")
    arguments.out.mkdir(parents=True, exist_ok=True)
    for robot, name in ROBOTS.items():
        strength = GENTLE.get(robot, 1.0) if arguments.gentle else 1.0
        episodes = [record(name, episode, arguments.steps, strength) for episode in range(arguments.episodes)]
        (arguments.out / f"{robot}.json").write_text(json.dumps(episodes, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
