# SPDX-License-Identifier: Apache-2.0

"""Keep results: the database, their JSON, and output files.

It also aggregates the results of several guests.
"""
