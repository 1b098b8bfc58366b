"""The compensated wrench of the one process, over real topics."""

from __future__ import annotations

import numpy as np
from geometry_msgs.msg import WrenchStamped
from ros_helpers import Group, connected
from ros_messages import FRAME, NAMESPACE, NS, feed, recording, stamp_of, wrench_of

TOPIC = f'{NAMESPACE}/wrench_compensated'
NOISE = np.repeat([0.1, 0.005], 3)


def test_free_motion_with_the_payload_found_leaves_noise_and_a_push_the_push() -> None:
    with Group() as group:
        group.publish_inputs()
        live = connected(group, parameters={'compensate_inertia': True})
        assert live.status['compensation'] == 'none'
        base = live.play(recording())
        assert live.status['compensation'] == 'payload'
        # It goes on where it stood, the arm carries on.
        sim = recording()
        last = int(sim.stamps[-1])
        messages = feed(sim, base + last + 8_000_000)
        pushed = base + last + 8_000_000 + 6 * NS
        for message in messages:
            if message.topic == '/wrench' and message.due >= pushed:
                message.content.wrench.force.x += 5.0
        with group.recorded((WrenchStamped, TOPIC)) as (compensated,):
            group.play(messages, speed=2.0)
            group.wait_for(
                lambda: compensated and stamp_of(compensated[-1]) == messages[-1].due,
                'the last wrench',
            )
        stamps = np.array([stamp_of(m) for m in compensated])
        wrenches = np.array([wrench_of(m) for m in compensated])
        assert {m.header.frame_id for m in compensated} == {FRAME}
        # All, once joint velocities are known and the node has heard of who listens.
        assert stamps[0] < pushed - 2 * NS
        sent = [m.due for m in messages if m.topic == '/wrench' and m.due >= stamps[0]]
        assert stamps.tolist() == sent
        free = wrenches[(stamps > pushed - 5 * NS) & (stamps < pushed)]
        assert (np.sqrt(np.mean(free**2, axis=0)) < 1.5 * NOISE).all()
        push = wrenches[stamps >= pushed][:10]
        assert abs(push[:, 0].mean() - 5.0) < 0.3
