# SPDX-License-Identifier: Apache-2.0

"""Parse arguments, call, and print: one class of cliff for each command.

The commands are the same for ``hpcvirt`` and ``openstack hpc``.
"""
