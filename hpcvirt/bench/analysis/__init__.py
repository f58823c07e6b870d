# SPDX-License-Identifier: Apache-2.0

"""Judge runs: statistics, bounds, the verdict, and the trends of a host."""
