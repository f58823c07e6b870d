# SPDX-License-Identifier: Apache-2.0

"""Test a cloud by Tempest. No other package imports Tempest."""
