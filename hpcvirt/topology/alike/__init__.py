# SPDX-License-Identifier: Apache-2.0

"""Find hosts that are alike, and say how others differ from them.

``hardware_features`` collects the features that are compared, ``differences``
puts differences into words, ``classes`` groups hosts, and ``report`` prints
the groups.
"""
