# SPDX-License-Identifier: Apache-2.0

"""Check the facts of a host against rules, and report.

Only ``audit/reading`` reads facts.
"""
