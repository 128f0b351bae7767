"""Make a kernel module for one scenario: flags fixed, policy beside it, compiled on demand."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from types import ModuleType

from gesim.sim.fast import kernel, tally, view
from gesim.sim.fast.policy_source import PolicySource

__all__ = ["Flags", "load_kernel"]


_DASHES = "# " + "-" * 90 + "\n"


@dataclass(frozen=True)
class Flags:
    """What a scenario uses; constants of the generated module."""

    LANES: int = 1
    INSTANCES: int = 1
    GROUPS: int = 1
    EAGER: bool = False
    BOUNDED: bool = False
    TIMEOUT: bool = False
    JITTER: bool = False
    LEVELLED: bool = False
    WORK: bool = False
    CALLED: bool = False
    DROPS: bool = False
    DUE: bool = False
    PLAIN: bool = False

    @property
    def SINGLE(self) -> bool:  # noqa: N802 - a constant of the kernel, too
        """Whether one lane, one instance and nothing else: `run_single` does."""
        more = self.BOUNDED or self.TIMEOUT or self.EAGER or self.LEVELLED or self.DROPS
        return self.LANES == 1 and self.INSTANCES == 1 and not more


_PRELUDE = """
import numpy as np
from numba import njit


@njit(inline="always")
def jittered(x, draw):
    return np.int64(np.rint(x * draw))
"""

_PLAIN_PRELUDE = """
def jittered(x, draw):
    return round(x * float(draw))
"""

_ASKING = """
def m_decide(ask, now_ns, q):
    return ask(
        now_ns, q.count, q.head_enqueue_ns, q.oldest_enqueue_ns, q.idle_instances,
        q.free_since_ns, q.last_dispatch_ns, q.last_finish_ns,
    )
"""

_CALLING = """
from gesim.sim.fast.calling import call_decide


def m_decide(address, now_ns, q):
    return call_decide(
        address, now_ns, q.count, q.head_enqueue_ns, q.oldest_enqueue_ns, q.idle_instances,
        q.free_since_ns, q.last_dispatch_ns, q.last_finish_ns,
    )
"""


def kernel_text(flags: Flags, policy: PolicySource | None) -> str:
    """Write the source of the module."""
    head, loop = _split(kernel)
    constants = head[head.index("LANES = 1") :]
    fixed = asdict(flags) | {"SINGLE": flags.SINGLE}
    calling = _ASKING if flags.PLAIN else _CALLING
    text = [
        "from typing import NamedTuple",
        _PLAIN_PRELUDE if flags.PLAIN else _PRELUDE,
        constants,
        "\n".join(f"{name} = {value!r}" for name, value in fixed.items()),
        _split(view)[1],
        policy.text if policy is not None else calling,
        loop,
    ]
    if flags.PLAIN:
        return "\n".join(text)
    head, fold = _split(tally)
    text += [head[head.index("BUCKETS = ") :], fold]
    return _decorated("\n".join(text), nogil=not flags.CALLED)


def _split(module: ModuleType) -> tuple[str, str]:
    """Source of a module before and after its line of dashes."""
    assert module.__file__ is not None
    head, _, body = Path(module.__file__).read_text(encoding="utf-8").partition(_DASHES)
    return head, body


_INLINED = ("look", "m_decide", "q_fit", "next_lane", "next_time", "arrive", "bucket", "book")


def _decorated(text: str, nogil: bool) -> str:
    """Put numba's decorators before every function that has none."""
    lines: list[str] = []
    for line in text.split("\n"):
        if line.startswith("def ") and not lines[-1].startswith("@"):
            name = line[4 : line.index("(")]
            if name in _INLINED:
                lines.append('@njit(inline="always")')
            else:
                lines.append(f'@njit(nogil={nogil}, cache=True, error_model="numpy")')
        lines.append(line)
    return "\n".join(lines)


def load_kernel(flags: Flags, policy: PolicySource | None) -> ModuleType:
    """Import the generated module; it lives in a cache folder, named by its content."""
    text = kernel_text(flags, policy)
    name = "gesim_kernel_" + hashlib.blake2b(text.encode(), digest_size=12).hexdigest()
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_folder()
    path = folder / f"{name}.py"
    if not path.exists():
        with tempfile.NamedTemporaryFile("w", dir=folder, delete=False, encoding="utf-8") as file:
            file.write(text)
        Path(file.name).replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cache_folder() -> Path:
    """Return the folder of generated kernels, made if missing."""
    base = os.environ.get("GESIM_CACHE_DIR") or Path.home() / ".cache" / "gesim"
    folder = Path(base) / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
