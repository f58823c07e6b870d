# SPDX-License-Identifier: Apache-2.0

"""Declare the options of the plug-ins, one file for each group."""
