# SPDX-License-Identifier: Apache-2.0

"""Plan flavors, and the settings of hosts.

It also names flavors, compares them with existing ones, finds mistakes in
them, and makes the empty host that follows from the settings.
"""
