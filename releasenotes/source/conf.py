# SPDX-License-Identifier: Apache-2.0

"""Sphinx configuration of the release notes."""

project = 'hpcvirt release notes'
copyright = 'hpcvirt developers'
author = 'hpcvirt developers'

extensions = [
    'openstackdocstheme',
    'reno.sphinxext',
]

html_theme = 'openstackdocs'
pygments_style = 'native'

openstackdocs_auto_name = False
openstackdocs_repo_name = 'hpcvirt'
openstackdocs_pdf_link = False
openstackdocs_use_storyboard = False

# Release notes have no version of their own.
version = ''
release = ''
