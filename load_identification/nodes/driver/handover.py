"""The services apply_payload and clear_payload: what the robot's driver is told that it holds."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future

import numpy as np
import pinocchio
from rclpy.node import Node
from rclpy.task import Future as Response
from std_msgs.msg import String

from load_identification.estimation.identifiability import limits
from load_identification.estimation.measurement import PARAMETERS
from load_identification.estimation.payload_estimate import PayloadEstimate, in_message_order
from load_identification.estimation.usable_samples import UNMEASURED
from load_identification.interface.names import PARAMETER_KEYS, told_apart
from load_identification.interface.parameters import Parameters
from load_identification.model.frames import find_fixed_frame
from load_identification.model.inertial_parameters import MATRIX, InertialParameters
from load_identification.model.robot import Robot
from load_identification.nodes.driver.link import DriverLink, refusal
from load_identification.nodes.service_responses import Answer, Job
from load_identification.nodes.store import DriverState
from load_identification.nodes.transport.description import StaticFrames
from load_identification.nodes.transport.subscriptions import LATCHED_QOS
from load_identification.pipeline.payload_stage import PayloadStage
from load_identification.typing_aliases import FloatArray
from load_identification.weighing.conditions import Conditions, Refusal
from load_identification.weighing.plausibility import too_heavy
from load_identification.weighing.verdict import SURE

FOUND, ANSWERED, SETTLED = 1.0, 3.3, 4.3
"""By when the driver's service must be there, the driver have answered, and the wrench have
stepped, all since the call [s]."""


class Handover:
    """Jobs of apply_payload and clear_payload.

    What the driver holds is stored by `keep`; its future is done when that is on the disk.

    Raises ParameterError if the interface of the driver chosen cannot be imported.
    """

    def __init__(
        self,
        node: Node,
        payload: PayloadStage,
        parameters: Parameters,
        require: Conditions,
        keep: Callable[[DriverState], Future[None]],
    ) -> None:
        self._node, self._payload, self._require = node, payload, require
        self._keep, self._kept = keep, payload.driver.held
        self._stored: Future[None] | None = None
        self._name = parameters.payload_driver
        self._link: DriverLink | None = None
        self._description = parameters.robot_description
        self._hung = ''
        if self._name == 'none':
            return
        self._link = DriverLink(node, self._name)
        self._static_frames = StaticFrames(node)
        if not self._description:
            node.create_subscription(
                String, '/robot_description', self._on_description, LATCHED_QOS
            )

    def tick(self) -> None:
        """Store what the driver holds, whenever that is something else."""
        driver = self._payload.driver
        if driver.held is not self._kept:
            self._kept = driver.held
            stamp = self._payload.estimator.newest
            state = DriverState(driver.held, driver.taken_off, stamp, driver.frame)
            self._stored = self._keep(state)

    def _on_description(self, message: String) -> None:
        self._description, self._hung = message.data, ''

    def apply(self) -> Job:
        """Tell the driver of the payload identified, or of tool and payload together."""
        called = time.monotonic()
        link = self._required()
        if self._payload.driver.elsewhere:
            raise Refusal(
                'the driver was told of a payload in sensor frame '
                f'{self._payload.driver.frame!r}: call clear_payload first'
            )
        estimate = self._identified(link)
        body = self._body(estimate, link)
        description = self._described(estimate.frame)
        flange, placement = self._flange(link, description, estimate.frame)
        words = self._too_heavy(estimate, description)
        if words:
            raise Refusal(f'above what the arm can hold: {words}')
        moved = body.transformed(placement.rotation, placement.translation)
        yield from self._hand_over(link, body, moved, flange, called)

    def clear(self) -> Job:
        """Tell the driver that nothing is held."""
        called = time.monotonic()
        link = self._required()
        self._require.fresh(UNMEASURED)
        self._require.standing()
        yield from self._hand_over(link, None, None, None, called)

    def _required(self) -> DriverLink:
        if self._link is None:
            raise Refusal("payload_driver is 'none': set it to ur or franka and start again")
        if self._payload.driver.changing:
            raise Refusal('the driver is being told of a payload: wait for the answer')
        return self._link

    def _identified(self, link: DriverLink) -> PayloadEstimate:
        """Return an estimate that is good enough to be handed over."""
        newest = self._require.fresh(UNMEASURED)
        self._require.standing()
        estimate = self._payload.estimator.estimate()
        if estimate is None:
            raise Refusal('no estimate yet')
        usable = self._payload.estimator.usable
        if not usable.confirmed_at(newest):
            age = f'{usable.missing_for(newest):.1f} s ago, {UNMEASURED:g} allowed'
            raise Refusal(f'the load was last confirmed {age}: wait until new samples do')
        self._require.nothing_in_doubt('apply_payload')
        if estimate.reversed_sign:
            raise Refusal(estimate.reasons[0])
        tool = self._payload.estimator.tool.parameters
        together = link.driver.total and bool(tool.any())
        inertia = link.takes_inertia and not together
        needed = estimate.identified if inertia else estimate.identified[:4]
        held = estimate.values[0] > SURE * estimate.std[0]
        if estimate.identified[0] and not held:
            if not together:
                raise Refusal(f'{estimate.reasons[0]}; to tell the driver so call clear_payload')
        elif not needed.all():
            reasons = estimate.reasons
            if not inertia:
                reasons = tuple(why for why in reasons if not why.startswith('inertia'))
            raise Refusal('; '.join(('not identified', *reasons)))
        if together:
            self._know_total(estimate, link)
        return estimate

    def _know_total(self, estimate: PayloadEstimate, link: DriverLink) -> None:
        """Refuse where tool and payload together are not known well enough."""
        required = self._payload.weigher.requirements
        values, std = in_message_order(estimate.total, estimate.total_covariance)
        allowed = limits(values, std, required)
        worse = np.flatnonzero(std > allowed)
        worse = worse if link.takes_inertia else worse[worse < 4]
        if worse.size:
            k = int(worse[0])
            known, needed = told_apart(std[k], allowed[k])
            raise Refusal(
                f'{PARAMETER_KEYS[k]} of tool and payload together has std {known}, {needed} '
                'required: move the arm more, or save the tool again'
            )

    def _body(self, estimate: PayloadEstimate, link: DriverLink) -> InertialParameters:
        """Return what the driver is to be told of, about the origin of S."""
        values, tool = estimate.values.copy(), self._payload.estimator.tool.parameters
        body = InertialParameters.from_vector(tool)
        if not link.driver.total:
            body = InertialParameters.from_vector(np.zeros(PARAMETERS))
        if estimate.identified[1:4].any():
            if not link.takes_inertia:
                values[4:] = 0.0
            body += InertialParameters.from_center_of_mass(
                values[0], values[1:4], values[4:][MATRIX]
            )
        if link.takes_inertia and not body.is_consistent():
            raise Refusal('no real body has this inertia: turn the sensor faster, about more axes')
        return body

    def _described(self, frame: str) -> str:
        """Return the robot description, with the sensor frame where /tf_static has that."""
        if not self._description:
            raise Refusal('no robot description yet: the flange is not known')
        self._hung = self._static_frames.extended(self._description, frame) or self._hung
        return self._hung or self._description

    def _flange(self, link: DriverLink, description: str, frame: str) -> tuple[str, pinocchio.SE3]:
        flange = find_fixed_frame(description, frame, link.driver.flange)
        if flange is None:
            raise Refusal(
                f'the robot description has no link {link.driver.flange_in_words}, or more than '
                f'one, that the sensor frame {frame!r} is fixed to: the flange is not known'
            )
        return flange

    def _too_heavy(self, estimate: PayloadEstimate, description: str) -> str:
        """Return in words that a joint cannot hold tool and payload in this pose."""
        gravity = self._payload.driver.gravity
        if not np.isfinite(gravity).all():
            return ''
        axes = self._payload.axes(Robot(description, estimate.frame))
        return too_heavy(estimate.total, gravity, axes)

    def _hand_over(
        self,
        link: DriverLink,
        body: InertialParameters | None,
        moved: InertialParameters | None,
        flange: str | None,
        called: float,
    ) -> Job:
        """Send a body, given about S and in the frame of the flange; None: nothing."""
        request = link.request(moved)
        dry = bool(self._node.get_parameter('payload_dry_run').value)
        answer: Answer = {
            'driver': self._name,
            'called': link.service,
            'dry_run': dry,
            'frame': flange,
            'request': request,
        }
        if dry:
            yield answer
            return
        while not link.ready:
            if time.monotonic() - called > FOUND:
                raise Refusal(
                    f'nobody offers {link.service}: is the driver running, and of the same '
                    'interface? Nothing was sent'
                )
            yield f'waiting for {link.service}'
        # The other service may have waited beside this one.
        self._required()
        self._require.standing()
        driver, before = self._payload.driver, self._payload.driver.taken_off
        self._stored = None
        phi = np.zeros(PARAMETERS) if body is None else body.to_vector()
        future = link.send(request)
        driver.begin(phi)
        try:
            while not future.done():
                if time.monotonic() - called > ANSWERED:
                    raise Refusal(self._unanswered(link, future, phi))
                yield f'waiting for {link.service}'
            why = _refused(future)
            if why:
                raise Refusal(f'the driver refuses: {why}')
            driver.told()
            while driver.changing and time.monotonic() - called < SETTLED:
                yield 'the driver holds it; waiting for the wrench to step'
        finally:
            if driver.conclude():
                self._payload.driver_payload_changed(before)
        while self._stored is None or not self._stored.done():
            yield 'the driver holds it, but that is not on the disk yet'
        error = self._stored.exception()
        if error is not None:
            raise Refusal(f'the driver holds it, but that will be lost at a restart: {error}')
        # Nothing told, and nothing taken off before: the wrench has not shown anything.
        something = bool(before.any() or driver.held.any())
        answer['taken_off_the_wrench'] = something and driver.taken_off is driver.held
        yield answer

    def _unanswered(self, link: DriverLink, future: Response, phi: FloatArray) -> str:
        """Return what to say of a driver that keeps silent; what it says later counts."""
        driver = self._payload.driver

        def late(response: Response) -> None:
            if not _refused(response) and not driver.changing:
                before = driver.taken_off
                driver.hold(phi)
                self._payload.driver_payload_changed(before)

        future.add_done_callback(late)
        return (
            f'{link.service} has not answered within {ANSWERED:g} s: it is not known whether the '
            'driver holds it; look at the driver and call again'
        )


def _refused(response: Response) -> str:
    """Return why a driver that has answered says no; empty where it says yes."""
    error = response.exception()
    return refusal(response.result()) if error is None else f'it cannot be asked: {error}'
