# SPDX-License-Identifier: Apache-2.0

"""Decide whether Placement and Nova's claim take a guest on a host.

It also says where, why not, how many, and what the guest takes from others.
Commands ask ``admission``, nova-scheduler asks ``claim``.
"""
