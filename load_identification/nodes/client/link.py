"""The way to a running pipeline: a node and a thread of its own that ask and listen.

A call may wait anywhere, in a callback of the caller's node too, and nobody else need spin.
"""

from __future__ import annotations

import contextlib
import math
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy._rclpy_pybind11 import RCLError
from rclpy.client import Client
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node

from load_identification.nodes.client.answers import NotAnsweredError
from load_identification.nodes.transport.subscriptions import LATCHED_QOS, STREAM_QOS

HEARD = 2
"""Messages of `status` since a call of which the last was surely sent after it."""


class Link:
    """Asks services and hears `status`, from any thread, whoever spins or does not.

    Parameters
    ----------
    node : Node
        The caller's.
    namespace : str
        Of the pipeline, relative to that of the node unless it begins with /.
    timeout : float
        For a service to be there and answer [s].
    """

    def __init__(self, node: Node, namespace: str, timeout: float) -> None:
        if not namespace.startswith('/'):
            namespace = f'{node.get_namespace().rstrip("/")}/{namespace}'
        self._namespace, self._timeout = namespace.rstrip('/'), timeout
        self._node = Node(
            f'{node.get_name()}_load_identification',
            namespace=node.get_namespace(),
            context=node.context,
            use_global_arguments=False,
            enable_rosout=False,
            start_parameter_services=False,
        )
        self._clients: dict[str, Client] = {}
        self._changed = threading.Condition()
        self._heard, self._status, self._when = 0, DiagnosticStatus(), -math.inf
        self._node.create_subscription(
            DiagnosticStatus, f'{self._namespace}/status', self._hear, LATCHED_QOS
        )
        executor = SingleThreadedExecutor(context=node.context)
        executor.add_node(self._node)
        thread = threading.Thread(target=_spin, args=(executor,), daemon=True)
        thread.start()
        self._finish = weakref.finalize(self, _finish, executor, thread, self._node)

    def close(self) -> None:
        """Ask and listen no more; done by itself at the end of the program."""
        self._finish()

    def ask(self, kind: Any, service: str, request: Any) -> Any:
        """Send a request and wait for the response."""
        name, end = f'{self._namespace}/{service}', time.monotonic() + self._timeout
        with self._changed:
            if name not in self._clients:
                # Each client hears the replies to all others, too, and ROS keeps ten of them.
                self._clients[name] = self._node.create_client(kind, name, qos_profile=STREAM_QOS)
        client = self._clients[name]
        while not client.service_is_ready():
            if time.monotonic() > end or not self._finish.alive:
                raise NotAnsweredError(
                    f'nobody offers {name}: does the pipeline run, in this namespace?'
                )
            time.sleep(0.01)
        answered = threading.Event()
        future = client.call_async(request)
        future.add_done_callback(lambda _: answered.set())
        if not answered.wait(max(end - time.monotonic(), 0.0)):
            client.remove_pending_request(future)
            raise NotAnsweredError(f'{name} has not answered within {self._timeout:g} s')
        return future.result()

    @property
    def newest(self) -> tuple[dict[str, str], str, float]:
        """Keys and message of the last status, and when it came [s, monotonic]."""
        with self._changed:
            status, when = self._status, self._when
        return {item.key: item.value for item in status.values}, str(status.message), when

    def _hear(self, status: DiagnosticStatus) -> None:
        with self._changed:
            self._status, self._when = status, time.monotonic()
            self._heard += 1
            self._changed.notify_all()

    def status_when(
        self, condition: Callable[[dict[str, str]], bool], timeout: float
    ) -> tuple[dict[str, str], str]:
        """Return keys and message of the status once they are as wanted, or after a timeout."""
        values: dict[str, str] = {}

        def as_wanted() -> bool:
            nonlocal values
            values = {item.key: item.value for item in self._status.values}
            return self._heard >= begin + HEARD and condition(values)

        with self._changed:
            begin = self._heard
            self._changed.wait_for(as_wanted, timeout)
            if self._heard < begin + HEARD:
                raise NotAnsweredError(
                    f'{self._namespace}/status says nothing: does the pipeline run, in this '
                    'namespace?'
                )
            return values, str(self._status.message)


def _spin(executor: SingleThreadedExecutor) -> None:
    # Whoever has made the context may end it at any time.
    with contextlib.suppress(ExternalShutdownException, RCLError):
        executor.spin()


def _finish(executor: SingleThreadedExecutor, thread: threading.Thread, node: Node) -> None:
    executor.shutdown(timeout_sec=1.0)
    thread.join(1.0)
    with contextlib.suppress(RCLError):
        node.destroy_node()
