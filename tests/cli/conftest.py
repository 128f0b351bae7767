import sys

import pytest

from gesim.cli.main import main

TINY = """\
schema: 1
name: tiny
seed: 3
requests: 200
models:
  - {name: net, cost: {kind: affine, setup: 1ms, per_item: 1ms}}
batching: {policy: delay_window, max_batch_size: 4, max_queue_delay: 3ms}
workload: {arrivals: {process: poisson, rate: 300/s}}
expect: [mean_batch >= 1]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The working directory, with tiny.yaml in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


@pytest.fixture
def gesim_command(here, capsys, monkeypatch):
    """Run the command; returns exit code, stdout and stderr."""
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)

    def run(*args):
        words = [str(arg) for arg in args]
        monkeypatch.setattr(sys, "argv", ["gesim", *words])
        with pytest.raises(SystemExit) as caught:
            main()
        written = capsys.readouterr()
        return caught.value.code or 0, written.out, written.err

    return run
