"""Both topics at 5 kHz: memory stays as it is, and the log is not filled."""

from __future__ import annotations

import struct
import time

import numpy as np
import pytest
from rclpy.serialization import serialize_message
from ros_arm import ROBOT
from ros_group import Group
from ros_messages import FRAME, NS, OFFSET, PAYLOAD, joint_message, recording, wrench_message
from ros_pipeline import Pipeline

from load_identification.simulation.sensors import load_wrench

RATE = 5000


def cycle() -> list[tuple[str, bytes]]:
    """Return the messages of one second, which can be repeated, without their stamps."""
    t = np.arange(RATE)[:, None] / RATE
    phase = np.linspace(0.0, 2.0, 6)
    turn = 2.0 * np.pi
    swing = np.sin(turn * t + phase), turn * np.cos(turn * t + phase)
    position, velocity = 0.3 * swing[0] + recording().position[0], 0.3 * swing[1]
    motion = ROBOT.motion(position, velocity, -(turn**2) * 0.3 * swing[0])
    noise = np.repeat([0.1, 0.005], 3) * np.random.default_rng(0).standard_normal((RATE, 6))
    wrench = load_wrench(PAYLOAD, motion) + OFFSET + noise
    names = recording().names
    messages = []
    for k in range(RATE):
        joints = joint_message(0, names, position[k], velocity[k])
        messages.append(('/joint_states', serialize_message(joints)))
        messages.append(('/wrench', serialize_message(wrench_message(0, FRAME, wrench[k]))))
    return messages


@pytest.mark.matrix
@pytest.mark.parametrize('seconds', [300])
def test_five_kilohertz_on_both_topics_fill_neither_memory_nor_log(seconds: int) -> None:
    messages = cycle()
    with Group() as group:
        group.publish_inputs()
        process = group.start()
        pipeline = Pipeline(group)
        pipeline.connect()
        publishers = {topic: group.publisher_of(topic) for topic, _ in messages[:2]}
        base, lines, memory = group.next_base(), process.output.count('\n'), []
        begin, sent = time.monotonic(), 0
        while sent < seconds * len(messages):
            due = int((time.monotonic() - begin) * len(messages))
            # What the machine does not get sent in time is sent later, never in heaps.
            for n in range(sent, min(due, sent + 200)):
                stamp = base + n // 2 * (NS // RATE)
                topic, content = messages[n % len(messages)]
                stamped = content[:4] + struct.pack('<iI', *divmod(stamp, NS)) + content[12:]
                publishers[topic].publish(stamped)
            sent = min(due, sent + 200)
            group.spin_once(0.0)
            if sent // len(messages) > len(memory):
                memory.append(process.memory)
        pipeline.settle()
        print(
            f'{sent} messages in {time.monotonic() - begin:.0f} s, {pipeline.used} samples used; '
            f'MB each 30 s: {[round(m, 1) for m in memory[29::30]]}; '
            f'dropped {[(k, v) for k, v in pipeline.status.items() if "dropped" in k]}; '
            f'log:\n{process.output}'
        )
        assert max(memory[30:]) < memory[29] + 5.0
        assert process.output.count('\n') <= lines + 2
        # The noise of a second comes 300 times; no interval is made for that.
        assert pipeline.number('mass') == pytest.approx(PAYLOAD.mass, rel=0.01)
