# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration of the documentation."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / 'ext'))

project = 'hpcvirt'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = [
    'openstackdocstheme',
    'oslo_config.sphinxext',
    'audit_rules',
    'benchmark_table',
    'bibliography_page',
    'command_reference',
    'extra_spec_table',
]

# A command line in prose keeps its two dashes.
smartquotes = False

html_theme = 'openstackdocs'
html_theme_options = {'display_global_toc_section': True}
pygments_style = 'native'

# The name comes from setup.cfg, the version from git, as in the package.
openstackdocs_auto_name = False
openstackdocs_repo_name = 'hpcvirt'
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False

#: Source, name, description, authors, section.
man_pages = [('cli/hpcvirt', 'hpcvirt',
              'near-native HPC instances on OpenStack Nova', [author], 1)]
