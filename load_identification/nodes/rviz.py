"""Publish the estimate for RViz: the markers, and the payload's frame on /tf."""

from __future__ import annotations

import numpy as np
from rclpy.node import Node
from visualization_msgs.msg import MarkerArray

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimate import PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.shapes import Shape, shape_of
from load_identification.nodes.markers import PayloadMarkers, Scene
from load_identification.nodes.transport.description import INSTALLED, PayloadFrame
from load_identification.nodes.transport.publishers import wanted
from load_identification.typing_aliases import FloatArray

MARKER_PERIOD = 0.2
"""Time between two publications of markers; the estimate's period if that is longer [s]. They
are locked to the sensor's frame and move with it in between. Nothing costs more than markers."""


class RvizOutput:
    """Publish `markers`, and `payload` on /tf, whenever the estimator does: each `period` [s]."""

    def __init__(self, node: Node, period: float) -> None:
        self._publisher = node.create_publisher(MarkerArray, 'markers', 10)
        self._frame = PayloadFrame(node)
        self._turns = max(1, round(MARKER_PERIOD / period))
        self._turn = 0
        self._markers = PayloadMarkers(period)
        self._newest: FilteredBatch | None = None
        self._up: FloatArray | None = None
        self._axes: FloatArray | None = None
        self._resolved: Shape | None = None
        self._sent = 0

    def take(self, batch: FilteredBatch) -> None:
        """Take in filtered samples, for the force and the upward direction."""
        if not wanted(self._publisher):
            self._newest = self._up = self._resolved = None
        elif batch.stamps.size:
            self._newest = batch
            known = batch.gravity[np.isfinite(batch.gravity).all(axis=1)]
            if known[-1:].any():
                self._up = -known[-1] / np.linalg.norm(known[-1])

    def publish(
        self, estimate: PayloadEstimate | None, state: str, stage: PayloadEstimator
    ) -> None:
        """Publish the markers and the frame of an estimate of the stage; None: nothing is shown.

        `state` is that of the status.
        """
        self._turn = (self._turn + 1) % self._turns
        showing = self._turn == 0 and wanted(self._publisher)
        shape = None
        if estimate is not None and (showing or INSTALLED):
            if not estimate.unresolved:
                self._resolved = self._shape(estimate)
            shape = self._resolved
            fresh = estimate.stamp != self._sent
            if shape is not None and fresh and estimate.identified.all():
                self._sent = estimate.stamp
                self._frame.send(estimate.stamp, estimate.frame, shape.center, shape.axes)
        if showing:
            scene = None
            if estimate is not None and self._up is not None:
                force = self._external_force(stage)
                scene = Scene(estimate, state == 'fault', shape, self._up, force)
            message = self._markers.update(scene)
            if message is not None:
                self._publisher.publish(message)

    def _shape(self, estimate: PayloadEstimate) -> Shape | None:
        """Return the payload's shape; its axes stay continuous while they are known at all."""
        covariance = estimate.covariance[:PARAMETERS, :PARAMETERS]
        body = InertialParameters.from_vector(estimate.parameters)
        if body.mass <= 0.0:
            self._axes = None
            return None
        shape = shape_of(body, covariance, self._axes)
        known = shape.moment_std.max() <= shape.moments[0]
        self._axes = shape.axes if known else None
        return shape

    def _external_force(self, stage: PayloadEstimator) -> FloatArray | None:
        """Return the contact force on the load at the newest sample, in S [N]."""
        if self._newest is None:
            return None
        explained = stage.explain(self._newest.select(slice(-1, None)))
        return None if explained is None else explained[1][0, :3]
