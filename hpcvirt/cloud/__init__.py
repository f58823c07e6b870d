# SPDX-License-Identifier: Apache-2.0

"""Call OpenStack: sessions, flavors, servers, traits, aggregates.

No other package imports novaclient or keystoneauth1.
"""
