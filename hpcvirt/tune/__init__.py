# SPDX-License-Identifier: Apache-2.0

"""Tune: measure which choices of a profile pay on the hosts of a site."""
