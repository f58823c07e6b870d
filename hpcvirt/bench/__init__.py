# SPDX-License-Identifier: Apache-2.0

"""Run benchmarks in guests and on hosts. Its packages follow the data."""
