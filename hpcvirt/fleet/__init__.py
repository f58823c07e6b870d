# SPDX-License-Identifier: Apache-2.0

"""Count what a fleet still takes, say why a guest does not fit, find moves.

Moves make room or empty hosts.
"""
