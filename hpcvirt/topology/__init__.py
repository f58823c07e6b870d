# SPDX-License-Identifier: Apache-2.0

"""Read the topology of a compute host from one of several sources.

Other packages call ``read(path)``. Each source has a reader of its own;
``collection.py`` lists them. ``topology/draw`` draws hosts, and
``topology/alike`` finds those that are alike.
"""

from hpcvirt.topology import collection

read = collection.read_source
