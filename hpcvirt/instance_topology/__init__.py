# SPDX-License-Identifier: Apache-2.0

"""Say where the devices of an instance are, in files for its guest."""
