# SPDX-License-Identifier: Apache-2.0

"""Define the benchmarks in YAML files, and size them for a machine."""
