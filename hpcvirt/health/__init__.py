# SPDX-License-Identifier: Apache-2.0

"""Sample and score hosts in service, and decide which has become slow.

Its loops watch a host and supervise a cloud.
"""
