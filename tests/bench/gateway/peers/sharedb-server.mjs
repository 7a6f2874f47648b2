/*
 * sharedb-server.mjs - ShareDB as its documentation sets it up: a database and messages in memory, JSON over `ws`. Prints
 * its port, and ends with its input.
 */
import ShareDB from 'sharedb';
import WebSocketJSONStream from '@teamwork/websocket-json-stream';
import { WebSocketServer } from 'ws';

const backend = new ShareDB();
const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false }, () =>
	process.stdout.write(`${server.address().port}\n`),
);
server.on('connection', (ws) => backend.listen(new WebSocketJSONStream(ws)));
process.stdin.on('end', () => process.exit(0)).resume();
