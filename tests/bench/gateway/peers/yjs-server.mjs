/*
 * yjs-server.mjs - the server that y-websocket brings (setupWSConnection, its documented entry), on the same `ws` as the other
 * peers. Documents are in memory; with YPERSISTENCE=DIR it also hands each update to y-leveldb. Prints its port, and ends
 * with its input.
 */
import { WebSocketServer } from 'ws';
import utils from 'y-websocket/bin/utils';

const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false }, () =>
	process.stdout.write(`${server.address().port}\n`),
);
server.on('connection', (ws, request) => utils.setupWSConnection(ws, request));
process.stdin.on('end', () => process.exit(0)).resume();
