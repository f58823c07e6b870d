# SPDX-License-Identifier: Apache-2.0

"""Turn moves into actions of Watcher. No other package imports Watcher."""
