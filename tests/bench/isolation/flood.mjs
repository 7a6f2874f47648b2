/*
 * flood.mjs - the one who sends eight expensive requests at a time, in a process of its own: reads answers, and does not
 * look at them. Reads {port, requests: [{method, path, headers, body | bytes | file}], edit: {conninfo, sql} | null} as
 * JSON from the first line of its input; ends with its input, and prints how many answers there were of each status.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import http from 'node:http';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const lines = createInterface({ input: process.stdin });
const { port, requests, edit } = JSON.parse((await once(lines, 'line'))[0]);
for (const request of requests) if (request.file) request.body = fs.readFileSync(request.file);
const counts = {};
let on = true;
let turn = 0;
lines.on('close', () => {
	on = false;
	setTimeout(finish, 1000); // what is not answered by then is given up
});

const psql = edit && spawn('psql', ['-XqAt', edit.conninfo], { stdio: ['pipe', 'ignore', 'inherit'] });

/** The status of the answer, whose bytes are dropped. */
function send({ method, path, headers, body, bytes }) {
	return new Promise((resolve) => {
		const outgoing = http.request({ host: '127.0.0.1', port, method, path, headers, agent: false }, (answer) => {
			answer.on('data', () => {});
			answer.on('end', () => resolve(answer.statusCode));
			answer.on('error', () => resolve('broken'));
		});
		outgoing.on('error', (error) => resolve(error.code ?? 'error'));
		outgoing.end(bytes ? Buffer.concat([Buffer.from(body[0]), Buffer.alloc(bytes, 7), Buffer.from(body[1])]) : body);
	});
}

await Promise.all(
	Array.from({ length: 8 }, async () => {
		while (on) {
			if (psql) psql.stdin.write(`${edit.sql};\n`);
			const status = await send(requests[turn++ % requests.length]);
			counts[status] = (counts[status] ?? 0) + 1;
			if (!(status >= 200 && status < 300)) await sleep(200);
		}
	}),
);
finish();

function finish() {
	psql?.stdin.end();
	process.stdout.write(`${JSON.stringify(counts)}\n`, () => process.exit(0));
}
