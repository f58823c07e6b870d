# SPDX-License-Identifier: Apache-2.0

"""Replay a workload over a fleet, and compare strategies and fleets.

Readers are in ``simulate/read``.
"""
