/*
 * ws-server.mjs - a server of protocol v1 on Node's `ws`, as one writes it in an afternoon: every edit goes to everybody,
 * nothing is kept.
 *
 *     ws-server.mjs plain        ws.send() of each message to each receiver
 *     ws-server.mjs coalescing   the frames of everything that came in one turn of the event loop are built once, and written
 *                                to each receiver's socket as one piece, past ws
 *
 * Both push a sender back: one whose receivers are more than 4 MB behind is not read.
 */
import { listen } from './listen.mjs';

const [kind] = process.argv.slice(2);
const behindMax = 4 << 20;
let members = [];
let paused = false;
let again;

function frame(text) {
	const len = Buffer.byteLength(text);
	const head = len < 126 ? 2 : 4;
	const bytes = Buffer.allocUnsafe(head + len);
	bytes[0] = 0x81;
	if (head === 2) bytes[1] = len;
	else {
		bytes[1] = 126;
		bytes.writeUInt16BE(len, 2);
	}
	bytes.write(text, head);
	return bytes;
}

/** Reads on, or not, by how far the slowest receiver is behind. */
function control() {
	const behind = members.some(({ socket }) => socket.writableLength > behindMax);
	if (behind !== paused) {
		paused = behind;
		for (const { ws } of members) {
			if (paused) ws.pause();
			else ws.resume();
		}
	}
	clearTimeout(again);
	if (paused) again = setTimeout(control, 1);
}

let collected = [];
function tell(text) {
	if (kind === 'plain') {
		for (const { ws } of members) ws.send(text);
		control();
		return;
	}
	if (collected.length === 0) setImmediate(flush);
	collected.push(frame(text));
}

function flush() {
	const bytes = Buffer.concat(collected);
	collected = [];
	for (const { socket } of members) socket.write(bytes);
	control();
}

listen().on('connection', (ws, request) => {
	const name = `user ${members.length}`;
	members.push({ ws, socket: request.socket });
	request.socket.setNoDelay(true);
	ws.send(
		JSON.stringify({
			msgType: 'onConn',
			body: { name: 'peer', columns: 100, content: Array(1000).fill(''), cellLocks: [] },
		}),
	);
	ws.on('message', (data) => {
		const { msgType, body } = JSON.parse(data);
		if (msgType === 'modify')
			tell(
				JSON.stringify({
					msgType,
					body: { row: body.row, col: body.col, content: body.content, info: body.info, username: name },
				}),
			);
	});
	ws.on('close', () => (members = members.filter((member) => member.ws !== ws)));
	ws.on('error', () => {});
});
