# SPDX-License-Identifier: Apache-2.0

"""Ask a Placement in this process."""

import webob


def ask(app, method, path, body=None):
    """Send a request to the WSGI application, and return the response."""
    request = webob.Request.blank(path, method=method, headers={
        'x-auth-token': 'admin',
        'openstack-api-version': 'placement 1.39'})
    if body is not None:
        request.json = body
        request.content_type = 'application/json'
    return request.get_response(app)
