#!/usr/bin/python3
"""
http_client.py - HTTP and WebSocket clients of Python, for redirects.test.mjs.

    http_client.py requests|aiohttp|urllib header|body URL TOKEN SHEET_ID

posts /getsheet, with the token in the Authorization header or in the body, and prints the answer.

    http_client.py websockets|websocket-client probe|v2 URL TOKEN SHEET_ID

probe: asks for the address by /sheetws?query=1, connects there by protocol v1, and prints the first message.
v2: connects by protocol v2 to URL, again where close code 4307 says, and prints the first message.
"""
import asyncio
import json
import sys
import urllib.request

kind, mode, url, token, sheet = sys.argv[1:6]
sheet = int(sheet)
headers = {"Authorization": "Bearer " + token} if mode == "header" else {}
body = {"fid": sheet} if mode == "header" else {"fid": sheet, "token": token}


def with_requests():
    import requests

    return requests.post(url + "/getsheet", json=body, headers=headers, timeout=20).text


def with_aiohttp():
    import aiohttp

    async def run():
        async with aiohttp.ClientSession() as session:
            async with session.post(url + "/getsheet", json=body, headers=headers) as answer:
                return await answer.text()

    return asyncio.run(run())


def with_urllib():
    request = urllib.request.Request(url + "/getsheet", json.dumps(body).encode(), headers)
    return urllib.request.urlopen(request, timeout=20).read().decode()


hello = json.dumps({"t": "hello", "v": 2, "token": token})


def probe():
    query = f"/sheetws?token={token}&fid={sheet}"
    with urllib.request.urlopen(url + query + "&query=1", timeout=20) as answer:
        found = json.load(answer)
    return found["data"] if found["msg"] == 19 else url.replace("http", "ws") + query


def websocket_messages(connect):
    """The first message, at the address that the gateway names if it does not serve the sheet."""
    if mode == "probe":
        return connect(probe(), None)[0]
    address = url.replace("http", "ws") + f"/sheetws?fid={sheet}"
    message, moved = connect(address, token)
    return message if moved is None else connect(f"{moved}?fid={sheet}", token)[0]


def with_websockets():
    import websockets

    async def connect(address, v2_token):
        async with websockets.connect(address, subprotocols=["sheet.v2"] if v2_token else None) as socket:
            try:
                if v2_token:
                    await socket.send(hello)
                return await socket.recv(), None
            except websockets.ConnectionClosed as closed:
                return None, json.loads(closed.rcvd.reason)["ws"]

    return websocket_messages(lambda address, v2_token: asyncio.run(connect(address, v2_token)))


def with_websocket_client():
    import websocket

    def connect(address, v2_token):
        socket = websocket.create_connection(
            address, timeout=20, subprotocols=["sheet.v2"] if v2_token else None, skip_utf8_validation=True
        )
        if v2_token:
            socket.send(hello)
        opcode, data = socket.recv_data()
        socket.close()
        if opcode == websocket.ABNF.OPCODE_CLOSE:
            return None, json.loads(data[2:])["ws"]
        return data.decode(), None

    return websocket_messages(connect)


print(
    {
        "requests": with_requests,
        "aiohttp": with_aiohttp,
        "urllib": with_urllib,
        "websockets": with_websockets,
        "websocket-client": with_websocket_client,
    }[kind]()
)
