"""The command `load_demo`: identify a simulated arm's payload live over ROS by the pipeline."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from load_identification.errors import ParameterError
from load_identification.interface import program
from load_identification.interface.program import option

EPILOG = program.exit_statuses(
    'everything is identified and agrees with the truth',
    'it does not',
    'the demonstration could not run',
)


def _parser() -> argparse.ArgumentParser:
    parser = program.make_parser(
        'load_demo',
        'Identify the payload of a simulated arm live, over ROS topics,\n'
        'and compare it with the truth.',
        EPILOG,
    )
    option(parser, '--seed', type=program.seed, default=0)(
        "of the sensors' noise (default: %(default)s)"
    )
    option(parser, '--report', metavar='DIR', type=Path)(
        'write an HTML page with plots to this folder'
    )
    option(parser, '--guided', action='store_true')(
        'let identify_payload move the arm about its pose, in place of the long motion'
    )
    option(parser, '--no-pipeline', action='store_true')(
        'feed and judge a pipeline that somebody else starts, as the launch file does'
    )
    return parser


def main(args: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    return program.run(_parser, _run, args, ros=True, lines=True)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.guided and arguments.report is not None:
        raise ParameterError('--report is of the long motion: leave it out, or --guided')

    from rich.console import Console

    from load_identification.commands.demo_pipeline import demo_node

    with demo_node('load_demo', arguments.argv) as node:
        console = Console(highlight=False, markup=False)
        own_pipeline = not arguments.no_pipeline
        if arguments.guided:
            # Imported here because only this mode needs trajectory_msgs.
            from load_identification.commands.guided import demonstration as guided

            holds = guided.demonstrate(node, arguments.seed, own_pipeline, console)
        else:
            from load_identification.commands import demonstration
            from load_identification.report.page import check_folder

            if arguments.report is not None:
                check_folder(arguments.report)
            holds = demonstration.demonstrate(
                node, arguments.seed, own_pipeline, console, arguments.report
            )
        return program.DONE if holds else program.NOT_DONE


if __name__ == '__main__':
    raise SystemExit(main())
