"""The pipeline for task planners: `LoadIdentification(node)`; see docs/task_planners.md."""

from load_identification.nodes.client.answers import (
    Answer,
    Body,
    Calibration,
    MassCheck,
    NotAnsweredError,
    NotIdentifiedError,
    Pending,
    RefusedError,
)
from load_identification.nodes.client.planner import LoadIdentification

__all__ = [
    'Answer',
    'Body',
    'Calibration',
    'LoadIdentification',
    'MassCheck',
    'NotAnsweredError',
    'NotIdentifiedError',
    'Pending',
    'RefusedError',
]
