# SPDX-License-Identifier: Apache-2.0

"""Draw the common parts of HTML pages: SVG, templates, the style sheet."""
