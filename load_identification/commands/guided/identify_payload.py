"""The command `identify_payload`: identify a payload by a small motion about the present pose."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from load_identification.interface import program
from load_identification.interface.program import option

STAGES = ('mass', 'com', 'inertia')

NOTES = """\
Reads /robot_description, /joint_states and /wrench, and plans a motion of
the last three joints. Without --execute nothing is sent.

It knows the arm, the floor and the boxes of --keep-out, and does not know
what else stands around the robot, nor the size of what it carries beyond
--payload-radius. Keep a hand on the emergency stop.

With --execute it needs a running pipeline, has it forget the payload
(reset), and sends segments of 2 s at most, each of which ends at rest. The
arm is stopped, within its limits, by Ctrl-C, a contact, a tracking error,
and where joint states, wrenches or the status do not come any more.

"""

EPILOG = NOTES + program.exit_statuses(
    'planned; with --execute: all that is needed is identified',
    'not all is identified, or the motion was not confirmed',
    'it could not run, or the motion is refused: one line says why',
    'the arm was stopped: one line says why',
)


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'identify_payload',
        'Identify what a robot carries by a small motion about its present pose.',
        EPILOG,
    )
    option(parser, '--need', nargs='+', choices=STAGES, default=['mass', 'com'])(
        'what is to be identified; the arm stops half a second after it is (default: mass com)'
    )
    sent = parser.add_argument_group('sending')
    option(sent, '--execute', action='store_true')('send the motion, once confirmed')
    option(sent, '--yes', action='store_true')('do not ask')
    to = sent.add_mutually_exclusive_group()
    option(to, '--topic', default=program.TRAJECTORY)(
        'of trajectory_msgs/JointTrajectory (default: %(default)s)'
    )
    option(to, '--action', metavar='NAME')(
        'a control_msgs/FollowJointTrajectory action instead, such as '
        '/joint_trajectory_controller/follow_joint_trajectory'
    )
    motion = parser.add_argument_group('motion')
    option(motion, '--amplitude', metavar='DEG', type=float, default=20.0)(
        'by which each joint turns to each side at most (default: %(default)g)'
    )
    option(motion, '--speed', metavar='SHARE', type=float, default=0.3)(
        "part of the joints' velocity limits (default and most: %(default)g)"
    )
    option(motion, '--payload-radius', metavar='M', type=float, default=0.1)(
        "of a ball about the sensor's origin that holds what is carried (default: %(default)g m)"
    )
    option(motion, '--floor', metavar='Z', type=float, default=0.0)(
        'height in the root frame that everything stays above (default: %(default)g m)'
    )
    option(motion, '--no-floor', action='store_true')('for an arm on a wall or ceiling')
    option(
        motion, '--keep-out', metavar=program.BOX, nargs=6, type=float, action='append', default=[]
    )('a box in the root frame that nothing may enter, m; any number of them')
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args, ros=True)


def _run(options: argparse.Namespace) -> int:
    from load_identification.motion.guided import GuidedRequest
    from load_identification.motion.limits import Box

    request = GuidedRequest(
        amplitude=math.radians(options.amplitude),
        speed=options.speed,
        floor=None if options.no_floor else options.floor,
        keep_out=tuple(map(Box.between, options.keep_out)),
        payload_radius=options.payload_radius,
    )

    from rich.console import Console

    from load_identification.commands.demo_pipeline import demo_node
    from load_identification.commands.guided.session import Session
    from load_identification.nodes.client.controller import ActionSender, TopicSender
    from load_identification.nodes.client.path_follower import StoppedError

    console = Console(highlight=False, markup=False, soft_wrap=True)
    with demo_node('identify_payload', options.argv) as node:
        sender = (
            ActionSender(node, options.action)
            if options.action
            else TopicSender(node, options.topic)
        )
        session = Session(node, console)
        motion = session.plan(request)
        if not options.execute:
            console.print('Nothing is sent without --execute.')
            return program.DONE
        session.look_for(sender)
        if not options.yes and not session.confirmed(options.action or options.topic):
            return program.NOT_DONE
        try:
            identified = session.move(motion, sender, options.need)
        except StoppedError as stop:
            console.print(f'Stopped: {stop}', style='bold red')
            session.show_rest(motion)
            return session.signalled or program.STOPPED
        session.show_result()
        return program.DONE if identified else program.NOT_DONE


if __name__ == '__main__':
    raise SystemExit(main())
