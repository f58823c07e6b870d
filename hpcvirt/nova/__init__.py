# SPDX-License-Identifier: Apache-2.0

"""Answer nova-scheduler and nova-api, which load this package.

It converts the objects of Nova, decides the plain cases by counting, lets
``fit`` decide the others, logs, and returns.
"""
