# SPDX-License-Identifier: Apache-2.0

"""Fill a host with instances while it is held in quarantine."""

import dataclasses

from hpcvirt.cloud import benchmark_instances
from hpcvirt.cloud import quarantine as cloud_quarantine
from hpcvirt.model import quarantine


@dataclasses.dataclass(frozen=True, kw_only=True)
class HeldHost(benchmark_instances.BenchmarkInstances):
    """Fills one host, which is the owner, and holds it in quarantine."""

    cloud: cloud_quarantine.Quarantine

    def hold(self, hold: quarantine.Hold) -> None:
        """Put the host in quarantine."""
        self.cloud.hold(self.owner, hold)

    def release(self, holder: str) -> None:
        """End the quarantine by one holder."""
        self.cloud.release(self.owner, holder)
