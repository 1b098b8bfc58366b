"""Keeps what survives a restart, and writes it beside the stream rather than in it."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor

from rclpy.node import Node

from load_identification.nodes import store
from load_identification.nodes.store import Stored, StoreError


class Keeper:
    """Offset and tool as stored for the namespace of a node.

    Parameters
    ----------
    node : Node
    """

    def __init__(self, node: Node) -> None:
        self._logger = node.get_logger()
        self._path = store.path_for(node.get_namespace())
        # A disk may take its time; the stream of samples does not wait for it.
        self._writer = ThreadPoolExecutor(1, 'store')
        self.problem = ''
        """What is wrong with the file, in words."""
        try:
            self.stored = store.load(self._path)
        except StoreError as error:
            self.stored = Stored()
            self.problem = f'not calibrated: {error}'
            self._logger.error(self.problem)
        if self.stored != Stored():
            self._logger.info(f'offset and tool as stored in {self._path}')

    def keep(self, stored: Stored) -> Future[None]:
        """Keep and write; the future is done when it is on the disk, or has the reason why not."""
        self.stored, self.problem = stored, ''
        future = self._writer.submit(store.save, self._path, stored)
        future.add_done_callback(self._written)
        return future

    def _written(self, future: Future[None]) -> None:
        error = future.exception()
        if error is not None:
            self.problem = f'not stored: {error}'
            self._logger.error(f'{self._path} cannot be written: {error}')

    def close(self) -> None:
        """Finish what is being written."""
        self._writer.shutdown()
