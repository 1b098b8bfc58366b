"""Connect to a running pipeline through a node with a thread of its own.

A call may block anywhere, even in a callback of the caller's node; no other thread has to spin.
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
"""Messages of `status` after a call of which the last was certainly sent after the call."""


class Link:
    """Call services and receive `status`, from any thread, whether the caller's node spins or not.

    `namespace` and `timeout` [s] are as of `LoadIdentification`.
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
        """Shut the connection down; the end of the program does so automatically."""
        self._finish()

    def ask(self, kind: Any, service: str, request: Any) -> Any:
        """Send a request and wait for the response."""
        name, end = f'{self._namespace}/{service}', time.monotonic() + self._timeout
        with self._changed:
            if name not in self._clients:
                # Each client also receives all others' responses, and ROS keeps ten by default.
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
        """Keys and message of the newest status, and its time of arrival [s, monotonic]."""
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
        """Return keys and message of the status once the condition holds, or after a timeout."""
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
    # The context's owner may end it at any time.
    with contextlib.suppress(ExternalShutdownException, RCLError):
        executor.spin()


def _finish(executor: SingleThreadedExecutor, thread: threading.Thread, node: Node) -> None:
    executor.shutdown(timeout_sec=1.0)
    thread.join(1.0)
    with contextlib.suppress(RCLError):
        node.destroy_node()
