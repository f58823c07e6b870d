# SPDX-License-Identifier: Apache-2.0

"""Hold the nouns of the program as frozen data.

These are hosts, the wiring of their devices, guest shapes, flavors, CPU sets
and quarantine.
"""
