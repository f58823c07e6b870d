# SPDX-License-Identifier: Apache-2.0

"""Read the topology of a compute host from one of several sources.

Other packages call ``read(path, source)``. Each source has a reader of its
own; :mod:`hpcvirt.topology.source` lists them.
"""

from hpcvirt.topology import source

read = source.read
