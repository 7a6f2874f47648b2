#!/usr/bin/env python3
"""Appends rows to a sheet, reads it as CSV, and changes a cell unless somebody else has done so meanwhile.

    PG_SHEET_TOKEN=pgs_... python3 example.py https://sheets.example.org 42

The token needs the scope edit (menu of the account in the page, or sheet.create_token). Python's standard library
only. docs/PROTOCOL.md and /openapi.json describe the routes.
"""
import csv
import http.client
import io
import json
import os
import sys
import urllib.error
import urllib.request


class Sheet:
    def __init__(self, server, sheet_id, token):
        self.address = f'{server}/v2/sheets/{sheet_id}'
        self.token = token

    def request(self, method, path, body=None, headers=None):
        """Returns (headers, text). Raises urllib.error.HTTPError for every answer that is not 2xx."""
        request = urllib.request.Request(self.address + path, method=method, headers={'Authorization': f'Bearer {self.token}', **(headers or {})})
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header('Content-Type', 'application/json')
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers, answer.read().decode()

    def append(self, rows):
        """Writes below the last content. Returns the rows' range, such as A5:B6."""
        return json.loads(self.request('POST', '/append', {'values': rows})[1])['range']

    def read_csv(self):
        return list(csv.reader(io.StringIO(self.request('GET', '.csv')[1], newline='')))

    def change(self, cell, function):
        """Sets the cell to function(its content). If it was changed meanwhile (412), reads it again."""
        while True:
            headers, text = self.request('GET', f'/cells?range={cell}')
            cells = json.loads(text)['cells']
            value = function(cells[0][2] if cells else '')
            try:
                self.request('PUT', f'/cells?range={cell}', {'values': [[value]]}, {'If-Match': headers['ETag']})
                return value
            except urllib.error.HTTPError as error:
                if error.code != 412:
                    raise


problems = {
    401: 'the token is wrong, has expired or is revoked: make another one',
    403: 'the token has not the scope edit, or the account may not edit the sheet',
    404: 'there is no such sheet',
    410: 'the sheet is in the trash',
    503: 'the server is busy: try again',
}


def reason_of(error):
    """What the gateway says; a proxy in front of it may answer with no JSON."""
    try:
        return json.loads(error.read())['data']
    except (ValueError, KeyError, TypeError):
        return error.reason


def main():
    if len(sys.argv) != 3 or 'PG_SHEET_TOKEN' not in os.environ:
        sys.exit(__doc__)
    if not os.environ['PG_SHEET_TOKEN'].strip():
        sys.exit('PG_SHEET_TOKEN is empty: set it to an access token')
    try:
        run(sys.argv[1], sys.argv[2], os.environ['PG_SHEET_TOKEN'].strip())
    except urllib.error.HTTPError as error:
        sys.exit(f'{problems.get(error.code, "the server refuses")} ({error.code}: {reason_of(error)})')
    except (OSError, http.client.HTTPException) as error:
        sys.exit(f'no connection to {sys.argv[1]}: {error}')
    except ValueError as error:
        sys.exit(f'an address or a value is not as expected: {error}')


def run(server, sheet_id, token):
    sheet = Sheet(server.rstrip('/'), sheet_id, token)
    print('appended', sheet.append([['apples', 3], ['pears', 4.5]]))
    for row in sheet.read_csv():
        print(row)
    print('visits:', sheet.change('D1', lambda content: int(content or 0) + 1))


if __name__ == '__main__':
    main()
