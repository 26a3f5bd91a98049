"""Environment steps per second: stein against Gymnasium and EnvPool, in one run on one machine.

    pip install "gymnasium[mujoco]" "mujoco==3.17.0" envpool
    python tools/compare_speed.py target/release/stein

Gymnasium and EnvPool step with random actions drawn beforehand; stein's figure is that of the rollouts of `stein bench`, which
include the policies' networks, their random numbers and densities. Each figure is the best of three rounds, taken in turns.
"""

import json
import subprocess
import sys
import time

import envpool
import gymnasium
import numpy

ROBOTS = {"hopper": "Hopper", "walker2d": "Walker2d", "halfcheetah": "HalfCheetah"}
STEPS = 4000
WORLDS = 10


def with_gymnasium(name):
    world = gymnasium.make(f"{name}-v5")
    world.action_space.seed(1)
    actions = [world.action_space.sample() for _ in range(STEPS)]
    world.reset(seed=1)
    start = time.perf_counter()
    for action in actions:
        _, _, terminated, truncated, _ = world.step(action)
        if terminated or truncated:
            world.reset()
    return STEPS / (time.perf_counter() - start)


def with_envpool(name, threads):
    task = f"{name}-v5" if f"{name}-v5" in envpool.list_all_envs() else f"{name}-v4"
    worlds = envpool.make_gymnasium(task, num_envs=WORLDS, num_threads=threads, seed=1)
    size = worlds.action_space.shape[0]
    actions = numpy.random.default_rng(1).uniform(-1, 1, (STEPS // WORLDS, WORLDS, size))
    worlds.reset()
    start = time.perf_counter()
    for action in actions:
        worlds.step(action)
    return STEPS / (time.perf_counter() - start)


def with_stein(program, robot, threads):
    sizes = ["--ensemble", str(WORLDS), "--iterations", "2", "--steps", "512", "--threads", str(threads)]
    command = [program, "bench", robot, "--method", "ppo", "--json", *sizes]
    return json.loads(subprocess.check_output(command))["env_steps_per_s"]


def main():
    program = sys.argv[1]
    print("| robot | threads | stein | EnvPool | Gymnasium (one process) |")
    print("|---|---|---|---|---|")
    for robot, name in ROBOTS.items():
        for threads in (1, 2):
            best = [0.0, 0.0, 0.0]
            for _ in range(3):
                best[0] = max(best[0], with_stein(program, robot, threads))
                best[1] = max(best[1], with_envpool(name, threads))
                best[2] = max(best[2], with_gymnasium(name))
            print(f"| {robot} | {threads} | " + " | ".join(f"{value:,.0f}" for value in best) + " |", flush=True)


main()
