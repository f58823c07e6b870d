# SPDX-License-Identifier: Apache-2.0

"""Spell the extra specs: a table of all keys, and the conversion to shapes.

No other package spells an extra spec.
"""
