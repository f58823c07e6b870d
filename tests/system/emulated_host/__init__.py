# SPDX-License-Identifier: Apache-2.0

"""Boot emulated compute hosts, and run programs on them or capture them.

QEMU emulates machines of several sockets, NUMA cells and threads
(``machines``) and boots a Debian kernel with any kernel parameters. The
guest has no disk: its first process (``guest-init``) mounts the programs of
this machine read-only, gets an ``/etc`` of its own, and runs one job. Without
systemd this takes half a minute.
"""
