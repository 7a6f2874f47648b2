#!/usr/bin/env python3
"""A first synchronization of a calendar of EVENTS events, with this gateway and with Radicale, by the requests of vdirsyncer: the list of
ETags, then all objects at once. Then synchronizations after a single change, which only this gateway answers.

Prints lines "NAME VALUE" for calendar.sql. Without Radicale it says so on stderr, and leaves out the comparison.
"""
import base64
import http.client
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse

EVENTS = int(os.environ.get('SYNC_EVENTS') or 10000)
SPACES = 'xmlns="DAV:" xmlns:C="urn:ietf:params:xml:ns:caldav"'
LIST = f'<propfind {SPACES}><prop><resourcetype/><getcontenttype/><getetag/></prop></propfind>'


class Server:
    def __init__(self, address, path, user, password):
        self.connection = http.client.HTTPConnection(address, timeout=900)
        self.path = path
        self.headers = {'Authorization': 'Basic ' + base64.b64encode(f'{user}:{password}'.encode()).decode(), 'Content-Type': 'application/xml'}

    def ask(self, method, body, path=None, headers=None):
        self.connection.request(method, path or self.path, body, {**self.headers, **(headers or {})})
        answer = self.connection.getresponse()
        text = answer.read().decode()
        if answer.status >= 300:
            sys.exit(f'{method} {path or self.path}: {answer.status} {text[:500]}')
        return text

    def first_sync(self):
        """Seconds."""
        began = time.monotonic()
        listed = self.ask('PROPFIND', LIST, headers={'Depth': '1'})
        hrefs = [href for href in re.findall(r'<(?:\w+:)?href>([^<]*)<', listed) if not href.endswith('/')]
        wanted = ''.join(f'<href>{href}</href>' for href in hrefs)
        found = self.ask('REPORT', f'<C:calendar-multiget {SPACES}><prop><getetag/><C:calendar-data/></prop>{wanted}</C:calendar-multiget>',
                         headers={'Depth': '1'}).count('BEGIN:VEVENT')
        if found != EVENTS:
            sys.exit(f'{self.path}: {found} events instead of {EVENTS}')
        return time.monotonic() - began


def psql(sql):
    return subprocess.run(['psql', '-XAtq', '-v', 'ON_ERROR_STOP=1', '-d', os.environ['PG_SHEET_DATABASE'], '-c', sql], check=True, capture_output=True,
                          text=True).stdout.strip()


def post(address, path, body, token=None):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request('POST', path, json.dumps({**body, **({'token': token} if token else {})}), {'Content-Type': 'application/json'})
    return json.loads(connection.getresponse().read())


def ours():
    address = urllib.parse.urlparse(os.environ['PG_SHEET_URL']).netloc
    token = post(address, '/register', {'username': 'sync', 'password': 'long enough', 'email': 'a@example.org'})['data']
    password = post(address, '/v2/tokens', {'label': 'sync', 'scopes': ['edit']}, token)['token']
    # In UTC, objects have no VTIMEZONE, which Radicale reads in some 50 ms each when it fills its cache.
    sheet = psql("SELECT sheet.create_calendar('sync', 'UTC', (SELECT uid FROM sheet.account WHERE name = 'sync'))")
    psql(f"""SELECT sheet.set_range({sheet}, 'A2', (SELECT array_agg(ARRAY['Event ' || i, to_char(timestamp '2027-01-01' + i * interval '53 min', 'YYYY-MM-DD HH24:MI'),
        '45 min', '', '', 'Room ' || i % 7, '', '', '', '', 'What event ' || i || ' is about', 'event-' || i]) FROM generate_series(1, {EVENTS}) i))""")
    while psql(f'SELECT count(*) FROM sheet.calendar_object WHERE sheet_id = {sheet} AND NOT gone') != str(EVENTS):
        time.sleep(0.1)
    psql('VACUUM ANALYZE sheet.calendar_object, sheet.task, sheet.series, sheet.occurrence')
    return sheet, Server(address, f'/dav/u/sync/{sheet}/', 'sync', password)


def radicale(folder, objects):
    root = os.path.join(folder, 'collection-root', 'sync', 'calendar')
    os.makedirs(root)
    with open(os.path.join(root, '.Radicale.props'), 'w') as props:
        json.dump({'tag': 'VCALENDAR'}, props)
    for name, text in objects:
        with open(os.path.join(root, name), 'w', newline='') as file:
            file.write(text)
    port = 20000 + os.getpid() % 10000
    process = subprocess.Popen(['/usr/bin/python3', '-m', 'radicale', '--config', '', '--storage-filesystem-folder', folder, '--server-hosts',
                                f'127.0.0.1:{port}', '--auth-type', 'none', '--rights-type', 'authenticated', '--logging-level', 'warning'])
    while process.poll() is None:
        try:
            http.client.HTTPConnection('127.0.0.1', port, timeout=5).connect()
            return process, Server(f'127.0.0.1:{port}', '/sync/calendar/', 'sync', 'x')
        except OSError:
            time.sleep(0.1)
    sys.exit('radicale has ended')


def changed_syncs(sheet, server):
    """Milliseconds of synchronizations after a change of one event."""
    def sync(token):
        return server.ask('REPORT', f'<sync-collection {SPACES}><sync-token>{token}</sync-token><sync-level>1</sync-level><prop><getetag/></prop></sync-collection>')

    token = re.search(r'<sync-token>(.*?)<', sync(''))[1]
    took = []
    for n in range(20):
        psql(f"SELECT sheet.set({sheet}, {1 + n * 37}, 0, 'changed {n}')")
        while True:
            began = time.monotonic()
            answer = sync(token)
            seconds = time.monotonic() - began
            if '<response>' in answer:
                break
            time.sleep(0.02)
        took.append(seconds * 1000)
        token = re.search(r'<sync-token>(.*?)<', answer)[1]
    return took


def main():
    sheet, server = ours()
    took = statistics.median(server.first_sync() for _ in range(3))
    print('sync_first_s', round(took, 3))
    print('sync_changed_ms', round(max(changed_syncs(sheet, server)), 3))
    if subprocess.run(['/usr/bin/python3', '-c', 'import radicale'], stderr=subprocess.DEVNULL).returncode != 0:
        print('radicale is not installed: no comparison', file=sys.stderr)
        return
    folder = tempfile.mkdtemp()
    process = None
    try:
        objects = json.loads(psql(f'SELECT json_agg(json_build_array(name, data)) FROM sheet.caldav_get({sheet})'))
        process, other = radicale(folder, objects)
        other.first_sync()  # fills its cache
        theirs = other.first_sync()
        print('sync_radicale_s', round(theirs, 3))
        print('sync_vs_radicale', round(took / theirs, 3))
    finally:
        if process:
            process.terminate()
            process.wait()
        shutil.rmtree(folder)


main()
