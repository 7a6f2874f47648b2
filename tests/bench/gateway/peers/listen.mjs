/* listen.mjs - what the servers in JavaScript do alike: WebSockets on a free port of loopback, which is printed, until the input ends. */
import { WebSocketServer } from 'ws';

export function listen() {
	const server = new WebSocketServer({ port: 0, host: '127.0.0.1', perMessageDeflate: false }, () =>
		process.stdout.write(`${server.address().port}\n`),
	);
	process.stdin.on('end', () => process.exit(0)).resume();
	return server;
}
