# SPDX-License-Identifier: Apache-2.0

"""Hold the outcome of an output, the record of a run, and the judgement."""
