# SPDX-License-Identifier: Apache-2.0

"""Plan what is measured where, and measure it."""
