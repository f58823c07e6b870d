# SPDX-License-Identifier: Apache-2.0

"""Run programs on this machine."""

from collections.abc import Sequence

from hpcvirt import child_environment
from hpcvirt import child_process
from hpcvirt.bench.execute import executor


class LocalExecutor:
    """The machine that hpcvirt itself runs on."""

    name = 'local'

    def run(self, argv: Sequence[str], stdin: bytes = b'',
            timeout_s: float = executor.SHORT_S) -> executor.Completed:
        # A detached job is a process that its starter leaves behind.
        return executor.Completed(*child_process.run(
            argv, where=self.name, limit_s=timeout_s, stdin=stdin,
            environment=child_environment.choose(
                *child_environment.BENCHMARK, *child_environment.SITE),
            most_bytes=executor.MAX_OUTPUT_BYTES, leaves_processes=True))

    def expect_restart(self) -> None:
        pass

    def close(self) -> None:
        pass
