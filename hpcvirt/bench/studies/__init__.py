# SPDX-License-Identifier: Apache-2.0

"""Hold the published studies in YAML files, scale and compare them."""
