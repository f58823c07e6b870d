# SPDX-License-Identifier: Apache-2.0

"""Read a host: the running one, or a copy of its /proc, /sys and /etc."""

import functools
import pathlib

from hpcvirt import exception
from hpcvirt.audit import fact
from hpcvirt.audit import facts
from hpcvirt.audit.reading import cpu
from hpcvirt.audit.reading import devices
from hpcvirt.audit.reading import files as files_module
from hpcvirt.audit.reading import hardware
from hpcvirt.audit.reading import kernel
from hpcvirt.audit.reading import memory
from hpcvirt.audit.reading import nova
from hpcvirt.model import host as host_model
from hpcvirt.topology import sysfs


def read(root: pathlib.Path = pathlib.Path('/')) -> facts.Facts:
    """Read all facts of a host.

    :param root: ``/``, or the root of a copy
    :raises InvalidInput: if it is not the root of a host
    """
    files = files_module.Files(root)

    @functools.cache
    def topology() -> host_model.Host:
        try:
            return sysfs.read(root)
        except exception.InvalidInput as exc:
            where = exc.where.removeprefix(str(root).rstrip('/'))
            raise fact.NotKnown(fact.UnknownFact(
                where or 'the topology', exc.what)) from exc

    return facts.Facts(
        name=files.host_name(), host=fact.fact(topology),
        cpu=cpu.read(files, lambda: topology().cpus),
        memory=memory.read(files), kernel=kernel.read(files),
        devices=devices.read(files), hardware=hardware.read(files),
        settings={name: fact.fact(functools.partial(files.setting, name))
                  for name in facts.SETTINGS},
        nova=fact.fact(lambda: nova.read(files)))
