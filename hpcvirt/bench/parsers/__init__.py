# SPDX-License-Identifier: Apache-2.0

"""Read the output of programs, with one module for each format."""
