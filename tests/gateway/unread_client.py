#!/usr/bin/python3
"""
unread_client.py - asks more than it reads, in segments that need far more of the gateway's kernel's memory than they
have bytes, until that kernel has no room for what its window has promised to take. Then it reads; for bounds.test.mjs.

    unread_client.py HOST PORT TOKEN SHEET_ID UID

Prints how many bytes the gateway had not read, how many questions were asked, and how many were answered.
"""
import fcntl
import json
import socket
import struct
import sys
import termios
import time

host, port, token, sheet, uid = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5])
TCP_INFO_SCALES = 6  # byte of struct tcp_info: the scales of both windows
PAUSED_S = 0.3  # nothing moves for so long: the gateway has stopped reading
PREFILLED = 190000  # bytes sent in large segments, less than the kernel's buffer for a paused WebSocket (256 kB) ...
SENT = 255000  # ... and more than that
ANSWER = b'"t":"user"'


def frame(message):
    text = json.dumps(message, separators=(",", ":")).encode()
    assert len(text) < 65536
    size = bytes([0x80 | len(text)]) if len(text) < 126 else b"\xfe" + struct.pack(">H", len(text))
    return b"\x81" + size + bytes(4) + text


def unacknowledged():
    return struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)))[0]


def unread():
    """Bytes in the receive buffer of the gateway's end, by /proc/net/tcp."""
    ours, theirs = connection.getsockname(), connection.getpeername()
    ends = ["%08X:%04X" % (struct.unpack("=I", socket.inet_aton(end[0]))[0], end[1]) for end in (theirs, ours)]
    with open("/proc/net/tcp") as table:
        for line in table:
            fields = line.split()
            if fields[1:3] == ends:
                return int(fields[4].split(":")[1], 16)
    raise SystemExit("the connection has ended")


def wait_read():
    """Waits until the gateway has read all. Returns whether it has not, and has stopped reading."""
    left, since = unread(), time.monotonic()
    while left > 0:
        now = unread()
        if now != left:
            left, since = now, time.monotonic()
        elif time.monotonic() - since > PAUSED_S:
            return True
        time.sleep(0.001)
    return False


connection = socket.create_connection((host, port))
connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
connection.sendall(
    (
        f"GET /sheetws?fid={sheet} HTTP/1.1\r\nHost: {host}:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        "Sec-WebSocket-Protocol: sheet.v2\r\n\r\n"
    ).encode()
)
connection.sendall(frame({"t": "hello", "v": 2, "token": token, "client": 0, "acked": 0, "since": 0}))
heard = b""
while b'"hello"' not in heard:
    piece = connection.recv(65536)
    if not piece:
        raise SystemExit("no hello: %r" % heard)
    heard += piece

question = frame({"t": "who", "uid": uid})
asked = 0


def ask(count):
    global asked
    connection.sendall(question * count)
    asked += count


while not wait_read():
    ask(500)
ask(max(0, (PREFILLED - unread()) // len(question)))

# A segment that is lost must be smaller than the unit of the window's size: the acknowledgements that follow it are
# then numbered after it, not before.
scales = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 64)[TCP_INFO_SCALES]
most = (1 << min(scales & 15, scales >> 4)) - 1
sent, since = unread(), time.monotonic()
while sent < SENT and time.monotonic() - since < PAUSED_S:
    if unacknowledged() + len(question) <= most:
        ask(1)
        sent += len(question)
        since = time.monotonic()

connection.settimeout(20)
answered, rest = 0, b""
try:
    while answered < asked:
        piece = connection.recv(65536)
        if not piece:
            break
        rest += piece
        answered += rest.count(ANSWER)
        rest = rest[rest.rfind(ANSWER) + len(ANSWER) :] if ANSWER in rest else rest[-len(ANSWER) :]
except socket.timeout:
    pass
print(json.dumps({"unread": sent, "asked": asked, "answered": answered}))
