"""Ctrl-C between two steps of a run, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["Interrupt", "interrupts"]


class Interrupt:
    """Whether Ctrl-C was pressed."""

    def __init__(self) -> None:
        self.pending = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if it was; call it where the records are consistent."""
        if self.pending:
            raise KeyboardInterrupt


@contextmanager
def interrupts() -> Iterator[Interrupt]:
    """Turn Ctrl-C into a flag while the block runs; it reaches the main thread only."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt
        return

    def note(signum: int, frame: FrameType | None) -> None:
        interrupt.pending = True

    previous = signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, previous)
