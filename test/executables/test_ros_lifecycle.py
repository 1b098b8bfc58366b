"""How the executables end: by Ctrl-C or SIGTERM at any time, or at once where misconfigured."""

from __future__ import annotations

import functools
import signal

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import WrenchStamped
from processes import ForkedProcess
from ros_group import Group
from ros_messages import NAMESPACE, PUMA
from ros_pipeline import Pipeline, pieces
from sensor_msgs.msg import JointState

FORMS = {
    'load_identification': '/one',
    'fusion': '/three',
    'filter': '/three',
    'estimator': '/three',
}
"""Every executable, and the namespace in which it is started here."""

SIGNALS = [signal.SIGINT, signal.SIGTERM]


def start_all(group: Group) -> dict[str, ForkedProcess]:
    """Start the single process and the three nodes, side by side."""
    return {
        module: group.start(
            module,
            {'robot_description': PUMA} if module in ('load_identification', 'filter') else {},
            {'__ns': f'{form}{NAMESPACE}'},
        )
        for module, form in FORMS.items()
    }


def assert_ended_cleanly(process: ForkedProcess) -> None:
    """Check that it ends, with nothing to complain of; benchmark/answers.py has the times."""
    assert process.wait() == 0, process.output
    for word in ('Traceback', 'Error', 'ERROR', 'terminate'):
        assert word not in process.output


def test_ends_cleanly_in_a_stream_of_1_khz() -> None:
    with Group() as group:
        group.publisher(JointState, '/joint_states')
        group.publisher(WrenchStamped, '/wrench')
        processes = start_all(group)
        pipelines = [Pipeline(group, f'{form}{NAMESPACE}') for form in ('/one', '/three')]
        samples = pieces(group, 20)

        def stream() -> None:
            # Ten samples in 10 ms.
            group.play(next(samples), 8.0)

        group.wait_for(
            lambda: all(pipeline.used > 10 for pipeline in pipelines),
            'samples used in both forms',
            meanwhile=stream,
        )
        # Each by the signal by which it is not ended when idle.
        for process, number in zip(processes.values(), 2 * SIGNALS[::-1], strict=True):
            process.send(number)
            while process.alive:
                stream()
            assert_ended_cleanly(process)


def test_ends_cleanly_when_idle() -> None:
    with Group() as group:
        heard: list[DiagnosticArray] = group.record(DiagnosticArray, '/diagnostics')
        processes = start_all(group)
        group.wait_for(
            lambda: len({status.name for message in heard for status in message.status}) == 6,
            'diagnostics of six nodes',
        )
        for process, number in zip(processes.values(), 2 * SIGNALS, strict=True):
            process.send(number)
            assert_ended_cleanly(process)


def test_ends_cleanly_before_its_nodes_are_made() -> None:
    with Group() as group:
        for module, number in zip(FORMS, 2 * SIGNALS, strict=True):
            process = group.start(module)
            # Before that it is Python that is starting, and that ends as Python does.
            group.wait_for(
                functools.partial(process.catches, signal.SIGTERM), 'its handlers', pause=0.001
            )
            process.send(number)
            assert_ended_cleanly(process)


HANG = """
import ctypes, rclpy.node
rclpy.node.Node.destroy_node = lambda _: ctypes.PyDLL(None).sleep(600)
"""
"""As Fast DDS of the pip wheels may: it keeps the interpreter to itself."""


def test_an_end_that_hangs_in_the_middleware_is_cut_short_and_says_where() -> None:
    with Group() as group:
        process = group.start_raw('estimator', [], HANG)
        group.wait_for(lambda: 'estimator_node' in group.node.get_node_names(), 'the node')
        process.send(signal.SIGTERM)
        assert process.wait() == 1
        assert 'runtime.py' in process.output


def test_further_signals_do_not_disturb_the_end() -> None:
    with Group() as group:
        pipeline = Pipeline(group)
        process = group.start()
        group.wait_for(lambda: pipeline.statuses, 'status')
        # A shell signals the whole foreground group, and a launch file's process its children.
        while process.alive:
            for number in SIGNALS:
                process.send(number)
            group.spin_once(0.001)
        assert_ended_cleanly(process)


# At start-up


PIPELINE = 'load_identification'
UNUSABLE = {
    'out of range': (PIPELINE, ['poll_rate:=-3'], ['poll_rate', '-3', '1 to 1000 Hz']),
    'two types': ('filter', ['gravity:=[0, 0, -9.8]'], ['gravity', '-9.8', 'same type']),
    'broken YAML': ('estimator', ['max_gap:=[0.0, 0.0'], ['max_gap:=[0.0, 0.0']),
    'no URDF': (PIPELINE, ['robot_description:=<robot'], ['robot_description', 'no valid URDF']),
    'no such link': (
        'filter',
        ["robot_description:=<robot name='r'><link name='base'/></robot>", 'sensor_frame:=wrist'],
        ['robot_description', "'wrist'", "'base'"],
    ),
    'a clock of another type': ('fusion', ['use_sim_time:=3'], ['use_sim_time', '3', 'BOOL']),
}
"""By case: executable, parameters, and the words it ends with."""


def test_every_unusable_value_is_named_in_one_line_with_what_is_allowed() -> None:
    with Group() as group:
        processes = [
            group.start_raw(module, [a for value in values for a in ('-p', value)])
            for module, values, _ in UNUSABLE.values()
        ]
        for process, (name, _, words) in zip(processes, UNUSABLE.values(), strict=True):
            assert process.wait() not in (0, 1)
            lines = process.output.splitlines()
            program = name if name == PIPELINE else f'{name}_node'
            (ours,) = [line for line in lines if line.startswith(f'{program}: ')]
            # The ROS client library logs by itself what it cannot parse.
            assert len(lines) <= 2, process.output
            for word in words:
                assert word in ours


def test_a_misspelt_parameter_is_warned_of_with_the_name_that_is_meant() -> None:
    with Group() as group:
        # So seldom does it poll that it must not wait for the next time to end.
        process = group.start(parameters={'cutof_frequency': 10.0, 'poll_rate': 1})
        group.wait_for(lambda: 'cutof_frequency' in process.output, 'the warning')
        line = next(li for li in process.output.splitlines() if 'cutof_frequency' in li)
        assert 'WARN' in line
        assert 'did you mean cutoff_frequency?' in line
        pipeline = Pipeline(group)
        group.wait_for(lambda: pipeline.statuses, 'status: it runs')
        # All three nodes of the process have been given it.
        assert process.output.count('cutof_frequency') == 1
        process.send(signal.SIGTERM)
        assert_ended_cleanly(process)
