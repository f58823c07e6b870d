# SPDX-License-Identifier: Apache-2.0

"""Run programs on this machine."""

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.execute import executor

CHUNK = 65536


class LocalExecutor:
    """The machine that hpcvirt itself runs on."""

    name = 'local'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        deadline = time.monotonic() + timeout_s
        try:
            with tempfile.TemporaryFile() as given:
                given.write(stdin)
                given.seek(0)
                process = subprocess.Popen(
                    list(argv), stdin=given, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, process_group=0)
            with process:
                try:
                    stdout, stderr = _read(process, argv[0], deadline)
                except BaseException:
                    # Kill the processes that the program started, too. The
                    # group may have ended at the same moment.
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    raise
        except subprocess.TimeoutExpired as exc:
            raise exception.TimedOut(
                f'local: {argv[0]} did not end within {timeout_s:g} s'
            ) from exc
        except FileNotFoundError as exc:
            raise exception.NotInstalled(
                f'local: {argv[0]}: {exc.strerror}') from exc
        except OSError as exc:
            raise exception.Unreachable(
                f'local: {argv[0]}: {exc.strerror}') from exc
        return executor.Completed(process.returncode, bytes(stdout),
                                  bytes(stderr))

    def expect_restart(self) -> None:
        pass

    def close(self) -> None:
        pass


def _read(process: subprocess.Popen[bytes], program: str,
          deadline: float) -> tuple[bytearray, bytearray]:
    """Read standard output and standard error of a program until it ends.

    :raises TimeoutExpired: if it does not end in time
    :raises Unreachable: if it prints too much
    """
    found = bytearray(), bytearray()
    with selectors.DefaultSelector() as selector:
        for stream, data in zip((process.stdout, process.stderr), found,
                                strict=True):
            if stream is not None:
                selector.register(stream, selectors.EVENT_READ, data)
        while selector.get_map():
            left_s = deadline - time.monotonic()
            ready = selector.select(max(0, left_s))
            if left_s < 0:
                raise subprocess.TimeoutExpired(program, 0)
            for key, _ in ready:
                chunk = os.read(key.fd, CHUNK)
                key.data.extend(chunk)
                if not chunk:
                    selector.unregister(key.fileobj)
            executor.check_output('local', program, *found)
    process.wait(max(0, deadline - time.monotonic()))
    return found
