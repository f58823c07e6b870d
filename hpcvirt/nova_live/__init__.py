# SPDX-License-Identifier: Apache-2.0

"""Read a cloud with Nova's code, to explain, count and make room.

Only ``nova`` and ``nova_live`` import Nova; ``cmd`` imports ``nova_live``
inside functions, to work without Nova.
"""
