# SPDX-License-Identifier: Apache-2.0

"""A demonstration of hpcvirt from end to end, on an embedded Nova.

``python -m demo`` reads hosts from topology files, plans flavors, creates them
through Nova's API, fills the hosts, and places the same requests with hpcvirt
and with only Nova. See demo/README.rst.
"""
