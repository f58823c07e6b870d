# SPDX-License-Identifier: Apache-2.0

"""Find hosts that are alike, and say how others differ from them.

``hardware_features`` collects the features to compare, ``differences``
describes differences, ``classes`` groups hosts, and ``report`` prints the
groups.
"""
