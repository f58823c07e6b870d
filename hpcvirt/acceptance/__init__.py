# SPDX-License-Identifier: Apache-2.0

"""Accept hosts: measured against native or against their class."""
