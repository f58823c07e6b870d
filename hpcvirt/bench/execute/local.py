# SPDX-License-Identifier: Apache-2.0

"""Run on this machine."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence

from hpcvirt import exception
from hpcvirt.bench.execute import executor


class LocalExecutor:
    """The machine that hpcvirt itself runs on."""

    name = 'local'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        try:
            with subprocess.Popen(
                    list(argv), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE, process_group=0) as process:
                try:
                    stdout, stderr = process.communicate(stdin, timeout_s)
                except BaseException:
                    # What the program started would run on otherwise. It may
                    # have ended in the same moment.
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
        return executor.Completed(process.returncode, stdout, stderr)

    def expect_restart(self) -> None:
        pass

    def close(self) -> None:
        """Do nothing: there is no connection."""
