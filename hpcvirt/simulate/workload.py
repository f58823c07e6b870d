# SPDX-License-Identifier: Apache-2.0

"""A workload: the jobs of a log or the model, before flavors are chosen."""

import dataclasses
from collections.abc import Mapping

from hpcvirt.model import flavor as flavor_model


@dataclasses.dataclass(frozen=True, slots=True)
class WorkloadJob:
    """A request of a log for one or more equal instances.

    :ivar time: time of the request, in seconds from the start of the log
    :ivar duration: life of its instances, in seconds
    :ivar cpus: CPUs of each instance
    :ivar memory_mib: memory of each instance; 0 if the log does not say
    :ivar count: number of instances, which are placed or refused together
    :ivar flavor: name of its flavor in the log; empty if there is none
    :ivar vfs: virtual functions of each instance
    :ivar gpus: whole GPUs of each instance
    """

    time: float
    duration: float
    cpus: int
    memory_mib: int = 0
    count: int = 1
    flavor: str = ''
    vfs: int = 0
    gpus: int = 0


@dataclasses.dataclass(frozen=True)
class Workload:
    """The jobs of a log, in the order of their time.

    :ivar name: the file or the model
    :ivar flavors: name to flavor, for those that the log describes
    :ivar splits: whether a job larger than the largest flavor may become
        several instances, as for processes of a parallel job
    :ivar notes: what the reader left out or assumed, one sentence each
    """

    name: str
    jobs: tuple[WorkloadJob, ...]
    flavors: Mapping[str, flavor_model.Flavor] = dataclasses.field(
        default_factory=dict)
    splits: bool = False
    notes: tuple[str, ...] = ()
