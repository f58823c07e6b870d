# SPDX-License-Identifier: Apache-2.0

"""Measure which choices of a profile pay on the hosts of a site."""
