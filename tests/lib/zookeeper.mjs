/* zookeeper.mjs - a client of ZooKeeper for tests, which reads and deletes nodes: there is none in JavaScript here. */
import net from 'node:net';

const [deleteType, getDataType, getChildrenType, closeType] = [2, 4, 8, -11];
const [anyVersion, connectTimeoutMs] = [-1, 5000];

const int = (value) => {
	const bytes = Buffer.alloc(4);
	bytes.writeInt32BE(value);
	return bytes;
};
const string = (text) => Buffer.concat([int(Buffer.byteLength(text)), Buffer.from(text)]);

/** A session, closed when `work` has ended. The functions that `work` gets throw an error with `code` when a server refuses. */
export async function withZookeeper({ host = '127.0.0.1', port }, work) {
	const socket = net.connect(port, host);
	const waiting = [];
	let xid = 0;
	let answers = Buffer.alloc(0);
	let problem;
	const end = (error) => {
		problem ??= error;
		for (const { reject } of waiting.splice(0)) reject(problem);
	};
	socket.on('error', end).on('close', () => end(new Error('ZooKeeper has closed the connection')));
	socket.setTimeout(connectTimeoutMs, () => socket.destroy(new Error('ZooKeeper does not answer')));
	socket.on('data', (data) => {
		answers = Buffer.concat([answers, data]);
		while (answers.length >= 4 && answers.length >= 4 + answers.readInt32BE(0)) {
			const length = 4 + answers.readInt32BE(0);
			waiting.shift()?.resolve(answers.subarray(4, length));
			answers = answers.subarray(length);
		}
	});
	const send = (...parts) =>
		new Promise((resolve, reject) => {
			if (problem) return reject(problem);
			const body = Buffer.concat(parts);
			waiting.push({ resolve, reject });
			socket.write(Buffer.concat([int(body.length), body]));
		});
	const ask = async (type, path, ...rest) => {
		const answer = await send(int(++xid), int(type), string(path), ...rest);
		const code = answer.readInt32BE(12);
		if (code !== 0) throw Object.assign(new Error(`ZooKeeper refuses ${path}: ${code}`), { code });
		return answer.subarray(16);
	};
	const noWatch = Buffer.alloc(1);
	try {
		await send(int(0), Buffer.alloc(8), int(connectTimeoutMs), Buffer.alloc(8), int(16), Buffer.alloc(16));
		return await work({
			remove: (path) => ask(deleteType, path, int(anyVersion)),
			/** The names of a node's children. */
			async children(path) {
				const body = await ask(getChildrenType, path, noWatch);
				const names = [];
				for (let i = 0, at = 4; i < body.readInt32BE(0); i++) {
					const length = body.readInt32BE(at);
					names.push(body.toString('utf8', at + 4, at + 4 + length));
					at += 4 + length;
				}
				return names;
			},
			/** The text of a node, and the transaction that has made it. */
			async read(path) {
				const body = await ask(getDataType, path, noWatch);
				const length = Math.max(0, body.readInt32BE(0));
				return { text: body.toString('utf8', 4, 4 + length), czxid: Number(body.readBigInt64BE(4 + length)) };
			},
		});
	} finally {
		if (!problem) await send(int(++xid), int(closeType)).catch(() => {});
		socket.destroy();
	}
}
