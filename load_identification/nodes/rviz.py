"""Publish the estimate for RViz: the payload's frame on /tf, and markers.

Markers are centre of mass, box, axes, mass, and the external force.

Grey: not identified. Orange: the payload before an unresolved change. Red: a fault. The colours
are those of Okabe and Ito, which colour-blind people can distinguish. The text states orange and
red in words as well.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import Header
from visualization_msgs.msg import Marker, MarkerArray

from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimate import UNKNOWN_STD, PayloadEstimate
from load_identification.estimation.payload_estimator import PayloadEstimator
from load_identification.interface.batches import FilteredBatch
from load_identification.interface.messages import set_rotation, set_stamp, set_vector
from load_identification.interface.names import FAULT, INTERVAL
from load_identification.model.inertial_parameters import InertialParameters
from load_identification.model.shapes import Shape, shape_of
from load_identification.nodes.transport.description import INSTALLED, PayloadFrame
from load_identification.nodes.transport.publishers import wanted
from load_identification.nodes.transport.subscriptions import OUTPUT_QOS
from load_identification.typing_aliases import FloatArray

MARKER_PERIOD = 0.2
"""Time between two publications of markers; the estimate's period if that is longer [s]. They
are locked to the sensor's frame and move with it in between. Nothing costs more than markers."""

NEWTONS_PER_METRE, SHORTEST_ARROW = 100.0, 0.01
"""Scale of the external force, 10 N are 10 cm [N/m]; shortest arrow drawn, 1 N [m]."""

LEAST_LIFETIME = 2.0
"""Lifetime of a marker; three publication periods if that is longer [s]."""

POINT_SIZE = 0.006
"""Diameter of the centre of mass [m]."""

THINNEST = 0.001
"""Smallest thickness of a drawn shape: one of zero thickness is invisible [m]."""

TEXT_HEIGHT, TEXT_GAP = 0.05, 0.08
"""Height of capitals, readable from 3 m; distance of the text from the load below it [m]."""

STICKING_OUT = 0.03
"""Length of the axes beyond the corners of the box [m]."""

SMALL = 0.05
"""Radius of a load whose box is unknown [m]."""

ROUGH_CENTER = 0.1
"""Largest semi-axis of the 95 % ellipsoid at which a centre of mass is drawn, in grey [m]."""

ROUGH_INERTIA = 0.5
"""Largest std of a moment, in largest moments, at which a box is drawn, in grey."""

SEGMENTS = 16
"""Segments of a cone's rim."""

Color = tuple[float, float, float]
"""Red, green, blue."""

GREY = (0.6, 0.6, 0.6)
RED = (1.0, 0.27, 0.2)
ORANGE = (0.902, 0.624, 0.0)
YELLOW = (0.941, 0.894, 0.259)
SKY_BLUE = (0.337, 0.706, 0.914)
BLUE = (0.0, 0.447, 0.698)
GREEN = (0.0, 0.62, 0.451)
PURPLE = (0.8, 0.475, 0.655)


@dataclass(frozen=True, eq=False)
class Scene:
    """The data to draw; `up` is a unit vector against gravity, `force` that on the load, in S [N].

    During an unresolved change, the shape is that of the payload before it; None: the mass is not
    positive.
    """

    estimate: PayloadEstimate
    fault: bool
    shape: Shape | None
    up: FloatArray
    force: FloatArray | None


class PayloadMarkers:
    """Fill one MarkerArray repeatedly, because creating it anew is too expensive.

    Every marker has its own namespace, so that RViz can hide it; the axes share one, with three
    ids. A marker that no longer applies is deleted once. They are published each `period` [s].
    """

    def __init__(self, period: float) -> None:
        self._header = Header()
        self._shown: list[Marker] = []
        lifetime = max(LEAST_LIFETIME, 3.0 * period)

        def marker(ns: str, kind: int, alpha: float, number: int = 0) -> Marker:
            made = Marker(header=self._header, ns=ns, type=kind, id=number, frame_locked=True)
            made.color.a = alpha
            made.lifetime.sec = int(lifetime)
            made.lifetime.nanosec = int((lifetime % 1.0) * 1e9)
            return made

        self._center = marker('center_of_mass', Marker.SPHERE, 1.0)
        _set_scale(self._center, np.full(3, POINT_SIZE))
        self._uncertainty = marker('center_of_mass_95', Marker.SPHERE, 0.4)
        self._box = marker('box', Marker.CUBE, 0.4)
        self._text = marker('mass', Marker.TEXT_VIEW_FACING, 1.0)
        self._text.scale.z = TEXT_HEIGHT
        self._axes = [
            marker('principal_axes_95', Marker.TRIANGLE_LIST, 0.8, number=k) for k in range(3)
        ]
        for axis in self._axes:
            axis.points = _unit_cone()
        self._force = marker('external_force', Marker.ARROW, 1.0)
        _set_scale(self._force, np.array([0.01, 0.02, 0.02]))  # shaft, head, length of the head
        self._force.points = [Point(), Point()]
        self._message = MarkerArray()

    def update(self, scene: Scene | None) -> MarkerArray | None:
        """Return the markers of a scene (None: an empty one); None: nothing to publish.

        RViz places a frame-locked marker by the newest transform and counts its lifetime from its
        arrival. The stamp is therefore free to be that of the marker's newest sample.
        """
        shown: list[Marker] = []
        if scene is not None:
            self._header.frame_id = scene.estimate.frame
            set_stamp(self._header, scene.estimate.stamp)
            body = self._draw_body(scene)
            shown = [*body, self._draw_text(scene, body), *self._draw_force(scene)]
        gone = [m for m in self._shown if not any(m is other for other in shown)]
        for marker in shown:
            marker.action = Marker.ADD
        for marker in gone:
            marker.action = Marker.DELETE
        self._shown = shown
        self._message.markers = shown + gone
        return self._message if shown or gone else None

    def _draw_body(self, scene: Scene) -> list[Marker]:
        """Draw the centre of mass if its ellipsoid is small enough; box and axes likewise."""
        shape, identified = scene.shape, scene.estimate.identified
        if shape is None or shape.uncertainty.semi_axes.max() > ROUGH_CENTER:
            return []
        color = _color(scene, bool(identified[:4].all()), YELLOW)
        _place(self._center, color, shape.center)
        _place(self._uncertainty, color, shape.center, shape.uncertainty.axes)
        _set_scale(self._uncertainty, 2.0 * shape.uncertainty.semi_axes)
        drawn = [self._center, self._uncertainty]
        if shape.sides is None or shape.moment_std.max() > ROUGH_INERTIA * shape.moments[0]:
            return drawn

        known = bool(identified.all())
        _place(self._box, _color(scene, known, BLUE), shape.center, shape.axes)
        _set_scale(self._box, shape.sides)
        drawn.append(self._box)
        length = _radius(shape.sides) + STICKING_OUT
        for marker, cone in zip(self._axes, shape.cones, strict=True):
            if cone.meaningful:
                _place(marker, _color(scene, known, GREEN), shape.center, cone.axes)
                _set_scale(marker, length * np.array([1.0, *np.tan(cone.half_angles)]))
                drawn.append(marker)
        return drawn

    def _draw_text(self, scene: Scene, body: list[Marker]) -> Marker:
        """Write the mass above the load for any orientation of the sensor."""
        place, radius = np.zeros(3), SMALL
        if scene.shape is not None and body:
            place = scene.shape.center
            radius = max(radius, float(scene.shape.uncertainty.semi_axes.max()))
            if scene.shape.sides is not None and len(body) > 2:
                radius = max(radius, _radius(scene.shape.sides) + STICKING_OUT)
        self._text.text = mass_text(scene.estimate)
        color = _color(scene, bool(scene.estimate.identified[0]), SKY_BLUE)
        _place(self._text, color, place + (radius + TEXT_GAP) * scene.up)
        return self._text

    def _draw_force(self, scene: Scene) -> list[Marker]:
        """Draw the external force at the sensor's origin, once the mass is or was identified."""
        if scene.force is None or not (scene.estimate.identified[0] or scene.estimate.unresolved):
            return []
        tip = scene.force / NEWTONS_PER_METRE
        # A dead channel makes it NaN; like a short arrow, it is not drawn.
        if not np.linalg.norm(tip) >= SHORTEST_ARROW:
            return []
        _place(self._force, RED if scene.fault else PURPLE, np.zeros(3))
        set_vector(self._force.points[1], tip)
        return [self._force]


def mass_text(estimate: PayloadEstimate) -> str:
    """Return mass and half its 95 % interval, '1.10 ± 0.02 kg', or why there is none."""
    mass, std = float(estimate.values[0]), float(estimate.std[0])
    known = np.isfinite(mass) and std < UNKNOWN_STD
    if estimate.reversed_sign:
        return 'wrench sign reversed?'
    if estimate.unresolved:
        return 'load changed, or contact? not resolved'
    if estimate.identified[0]:
        return f'{with_interval(mass, INTERVAL * std)} kg'
    return f'mass std {std:.1g} kg, not identified' if known else 'mass not identified'


def with_interval(value: float, half: float) -> str:
    """Return value and half interval, rounded to the latter's first digit, at least to grams."""
    digits = 3
    if half > 0.0:
        digits = int(np.clip(-np.floor(np.log10(half)), 0, 3))
    return f'{value:.{digits}f} ± {max(half, 10.0**-digits):.{digits}f}'


def _color(scene: Scene, identified: bool, color: Color) -> Color:
    if scene.fault:
        return RED
    if scene.estimate.unresolved:
        return ORANGE
    return color if identified else GREY


def _radius(sides: FloatArray) -> float:
    """Return the distance from a cuboid's centre to its corners [m]."""
    return 0.5 * float(np.linalg.norm(sides))


def _place(
    marker: Marker, color: Color, position: FloatArray, rotation: FloatArray | None = None
) -> None:
    """Set a marker's colour and its pose in S."""
    marker.color.r, marker.color.g, marker.color.b = color
    set_vector(marker.pose.position, position)
    if rotation is not None:
        set_rotation(marker.pose.orientation, rotation)


def _set_scale(marker: Marker, sizes: FloatArray) -> None:
    set_vector(marker.scale, np.maximum(sizes, THINNEST))


def _unit_cone() -> list[Point]:
    """Return the triangles of a cone from the origin along x, 1 long and 1 wide to each side."""
    angles = np.linspace(0.0, 2.0 * np.pi, SEGMENTS + 1)
    rim = [Point(x=1.0, y=float(np.cos(a)), z=float(np.sin(a))) for a in angles]
    apex = Point()
    return [point for k in range(SEGMENTS) for point in (apex, rim[k], rim[k + 1])]


class RvizOutput:
    """Publish `markers`, and `payload` on /tf, whenever the estimator does: each `period` [s]."""

    def __init__(self, node: Node, period: float) -> None:
        self._publisher = node.create_publisher(MarkerArray, 'markers', OUTPUT_QOS)
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
            if estimate is not None and self._up is not None and self._newest is not None:
                explained = stage.explain(self._newest.select(slice(-1, None)))
                force = None if explained is None else explained[1][0, :3]
                scene = Scene(estimate, state == FAULT, shape, self._up, force)
            message = self._markers.update(scene)
            if message is not None:
                self._publisher.publish(message)

    def _shape(self, estimate: PayloadEstimate) -> Shape | None:
        """Return the payload's shape; its axes keep their signs while they are known at all."""
        covariance = estimate.covariance[:PARAMETERS, :PARAMETERS]
        body = InertialParameters.from_vector(estimate.parameters)
        if estimate.identified.all():
            # As published: the nearest real body, where the parameters are of none.
            body = InertialParameters.from_message_order(estimate.values)
        if body.mass <= 0.0:
            self._axes = None
            return None
        shape = shape_of(body, covariance, self._axes)
        known = shape.moment_std.max() <= shape.moments[0]
        self._axes = shape.axes if known else None
        return shape
