# SPDX-License-Identifier: Apache-2.0

"""Write results and studies as text and as an HTML page."""
