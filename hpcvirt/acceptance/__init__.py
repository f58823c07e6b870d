# SPDX-License-Identifier: Apache-2.0

"""Accept hosts: measured against native or against their class.

The Tempest plugin uses ``measurement.py`` too. The quick gate, the verdict of
a host, its traits, pairs of hosts, and the run of a case of a study are here.
"""
