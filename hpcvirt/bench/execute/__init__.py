# SPDX-License-Identifier: Apache-2.0

"""Run commands on a machine: local, over ssh or in a job of Slurm.

Jobs, CPU affinity, MPI hosts, reboots, and the probe of a machine are here.
"""
