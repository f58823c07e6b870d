# SPDX-License-Identifier: Apache-2.0

"""Read a host: the running one, or a copy of its /proc, /sys and /etc."""

import pathlib

from hpcvirt.audit.reading import nova
from hpcvirt.audit.reading.cpu import CpuFacts
from hpcvirt.audit.reading.files import Fact
from hpcvirt.audit.reading.files import FactGroup
from hpcvirt.audit.reading.files import Files
from hpcvirt.audit.reading.hardware import HardwareFacts
from hpcvirt.audit.reading.kernel import KernelFacts
from hpcvirt.audit.reading.memory import MemoryFacts


class HostFacts(FactGroup):
    """A host."""

    name = Fact(Files.host_name)
    #: The topology.
    host = Fact(Files.topology)
    cpu = Fact(CpuFacts)
    memory = Fact(MemoryFacts)
    kernel = Fact(KernelFacts)
    hardware = Fact(HardwareFacts)
    #: None if no configuration of nova-compute is there.
    nova = Fact(nova.read)

    def setting(self, path: str) -> str | None:
        """Read a file with one value; None if the kernel has no such file.

        :raises NotKnown: if it cannot be read
        """
        return self.know(path, lambda: self.files.setting(path))


def read(root: pathlib.Path = pathlib.Path('/')) -> HostFacts:
    """Find a host, whose facts are read when they are needed.

    :param root: ``/``, or the root of a copy
    :raises InvalidInput: if it is not the root of a host
    """
    return HostFacts(Files(root))
