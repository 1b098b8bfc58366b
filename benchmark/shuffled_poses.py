"""A real recording of poses, handed on pose by pose in random order: do the first claims hold?"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import load_identification  # noqa: F401  (before NumPy: one thread)

# isort: split
import numpy as np

from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.interface.batches import JointBatch, WrenchBatch, joined
from load_identification.interface.cdr import JointStateReader, WrenchReader
from load_identification.interface.parameters import Parameters
from load_identification.recordings.reader import JOINT_STATE, WRENCH, Topics, open_recording
from load_identification.simulation.cells import Stages
from load_identification.typing_aliases import IntArray

APART = 1_000_000_000
"""Samples further apart are of two poses [ns]."""

PIECES = (2, 3, 5, 10, 20)
"""After so many poses there is a look, besides the first claim."""


def read(path: Path, parameters: Parameters) -> tuple[str, JointBatch, WrenchBatch]:
    """Return description, joint states and wrenches of a recording, which share their stamps."""
    joints, wrenches = [], []
    with open_recording(path, Topics()) as reader:
        description = reader.description()
        states = JointStateReader(Counter(), reader.decoder(JOINT_STATE), JointBatch)
        forces = WrenchReader(parameters.sensor_frame, Counter(), reader.decoder(WRENCH))
        for chunk in reader.chunks():
            joints += states.read(chunk.joint_states)
            wrenches += forces.read(chunk.wrenches)
    whole, raw = joined(joints), joined(wrenches)
    if len(raw.stamps) != len(whole.stamps):
        raise SystemExit(f'{path}: {len(whole.stamps)} joint states, {len(raw.stamps)} wrenches')
    return description, whole, replace(raw, stamps=whole.stamps)


def in_order(
    joints: JointBatch, wrenches: WrenchBatch, order: list[IntArray]
) -> list[tuple[JointBatch, WrenchBatch]]:
    """Return the samples of each pose, as if poses had followed in this order 2 s apart."""
    begin, out = 0, []
    for rows in order:
        stamps = joints.stamps[rows] - joints.stamps[rows[0]] + begin
        begin = int(stamps[-1]) + 2 * APART
        states, forces = joints.select(rows), wrenches.select(rows)
        out.append((replace(states, stamps=stamps), replace(forces, stamps=stamps)))
    return out


def shuffled(path: Path, true_mass: float, runs: int, parameters: Parameters) -> str:
    """Return a table of what is claimed of the mass of a load, over random orders of poses."""
    description, joints, wrenches = read(path, parameters)
    cuts = np.flatnonzero(np.diff(joints.stamps) > APART) + 1
    rows = [r for r in np.split(np.arange(len(joints.stamps)), cuts) if len(r) >= 20]
    looks: dict[str, list[PayloadEstimate]] = {'first': [], **{str(k): [] for k in PIECES}}
    first_after = []
    for seed in range(runs):
        order = np.random.default_rng(seed).permutation(len(rows))[: max(PIECES)]
        stages = Stages(parameters, description, wrenches.frame)
        claimed = False
        poses = in_order(joints, wrenches, [rows[k] for k in order])
        for count, (states, forces) in enumerate(poses, 1):
            stages.update(states, forces)
            estimate = stages.estimator.estimate()
            if estimate is None:
                continue
            if estimate.identified[0] and not claimed:
                claimed = True
                first_after.append(count)
                looks['first'].append(estimate)
            if count in PIECES:
                looks[str(count)].append(estimate)
    lines = [
        f'{path}: {len(rows)} poses, {runs} orders; mass {true_mass} kg',
        'look  claimed  held  +-  off',
    ]
    for name, estimates in looks.items():
        known = [e for e in estimates if e.identified[0]]
        if not known:
            lines.append(f'{name:>5} nothing claimed')
            continue
        off = np.array([e.values[0] / true_mass - 1.0 for e in known])
        half = np.array([1.96 * e.std[0] / true_mass for e in known])
        lines.append(
            f'{name:>5}  {len(known) / runs:.2f}  {np.mean(np.abs(off) <= half):.2f}  '
            f'{np.median(half):.1%}  median {np.median(np.abs(off)):.1%} worst '
            f'{np.abs(off).max():.1%}'
        )
    lines.append(f'first claim after {np.median(first_after)} poses' if first_after else '')
    return '\n'.join(lines)
