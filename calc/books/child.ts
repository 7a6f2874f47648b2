// child.ts - a process that converts one workbook. It has no connection: what it reads and makes goes through calc, which says what is
// done, so that little waits there.
import fs from 'node:fs';
import os from 'node:os';
import { Worker } from 'node:worker_threads';
import { ByteReader, ByteWriter } from '../../gateway/web/src/v2/bytes';
import { readStoredProperties, writeEdits } from '../../gateway/web/src/v2/edits';
import type { Edit } from '../../gateway/web/src/v2/messages';
import { PropertySet } from '../../gateway/web/src/v2/properties';
import { Flow } from './flow';
import type { FileHead, FromChild, ToChild } from './messages';
import type { StoredFile } from './pictures';
import { Refused } from './read/refused';
import { WorkbookReader } from './read/workbook';
import { Cells } from './write/cells';
import type { Tab } from './write/tab';
import { WorkbookWriter } from './write/workbook';

const partBytes = 262_144;

const tell = (message: object): void => void process.send!(message, () => {});
const flow = new Flow<FromChild>(tell);
const send = (message: FromChild): Promise<void> => flow.send(message);

// A conversion has time: edits, and the values of formulas, go first (see also conversion.ts). On Linux, each thread has a priority of its own.
const threads = fs.existsSync('/proc/self/task') ? fs.readdirSync('/proc/self/task').map(Number) : [0];
for (const thread of threads) {
	try {
		os.setPriority(thread, 10);
	} catch {
		// It has ended.
	}
}
// It ends with calc, also in the midst of a long computation: then a thread notices.
process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'));
new Worker(`setInterval(() => process.ppid !== ${process.ppid} && process.kill(process.pid, 'SIGKILL'), 500)`, { eval: true }).unref();
process.on('uncaughtException', ({ stack = '' }) => {
	fs.writeSync(2, stack);
	process.exit(1);
});
try {
	// If the system has no memory left, it ends this process rather than another one.
	fs.writeFileSync('/proc/self/oom_score_adj', '1000');
} catch {
	// Not Linux, or not permitted.
}

/** An edit batch, as sheet.apply() takes it. */
function batchOf(uid: number, edits: Edit[]): Uint8Array {
	const to = new ByteWriter();
	to.byte(1);
	to.number(0);
	to.number(0);
	writeEdits(
		to,
		edits.map((edit) => ({ ...edit, uid })),
	);
	return to.finish();
}

/** Bytes as parts of one size; the last one may be shorter. */
async function* inParts(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
	let waiting: Uint8Array[] = [];
	let length = 0;
	for await (const chunk of chunks) {
		waiting.push(chunk);
		length += chunk.length;
		if (length < partBytes) continue;
		const bytes = Buffer.concat(waiting);
		let at = 0;
		for (; bytes.length - at >= partBytes; at += partBytes) yield bytes.subarray(at, at + partBytes);
		waiting = [bytes.subarray(at)];
		length = bytes.length - at;
	}
	if (length > 0) yield Buffer.concat(waiting);
}

let answered: (answer: string | null) => void;

/** Sends what calc answers. */
async function ask(message: FromChild): Promise<string | null> {
	const answer = new Promise<string | null>((resolve) => (answered = resolve));
	await send(message);
	return answer;
}

async function sendFile(file: FileHead, bytes: AsyncIterable<Uint8Array>): Promise<StoredFile | null> {
	const name = await ask({ t: 'beginFile', ...file });
	if (name === null) return null;
	for await (const part of inParts(bytes)) await send({ t: 'fileBytes', bytes: part });
	return { file: name, key: (await ask({ t: 'endFile' }))! };
}

const received: Uint8Array[] = [];

async function read(uid: number): Promise<void> {
	const { lost, kept } = await WorkbookReader.read(Buffer.concat(received), {
		tab: (name) => send({ t: 'tab', name }),
		edits: (edits) => send({ t: 'edits', bytes: batchOf(uid, edits) }),
		endTab: (colour, hidden) => send({ t: 'endTab', colour, hidden }),
		again: (tab) => send({ t: 'again', tab }),
		file: sendFile,
	});
	await send({ t: 'read', lost, kept });
}

let writer: WorkbookWriter;
let tab: Tab | undefined;
let output: Promise<void>;

async function sendOutput(): Promise<void> {
	for await (const bytes of inParts(writer.output)) await send({ t: 'file', bytes });
}

async function endTab(): Promise<void> {
	if (tab) await writer.addTab(tab);
	tab = undefined;
}

async function take(message: ToChild): Promise<void> {
	switch (message.t) {
		case 'bytes':
			received.push(message.bytes);
			return;
		case 'read':
			return read(message.uid);
		case 'write':
			writer = new WorkbookWriter(message.names);
			output = sendOutput();
			return;
		case 'tab': {
			await endTab();
			const properties = new PropertySet();
			if (message.properties) for (const property of readStoredProperties(new ByteReader(message.properties))) properties.put(property);
			tab = { name: message.name, colour: message.colour, hidden: message.hidden, properties, cells: new Cells(message.isComputed, message.part) };
			return;
		}
		case 'cells':
			return tab!.cells.add(message.bytes);
		case 'values':
			return tab!.cells.addValues(message.bytes);
		case 'picture':
			return writer.pictures.begin(message.key, message.type);
		case 'pictureBytes':
			return writer.pictures.add(message.bytes);
		case 'end':
			await endTab();
			await writer.end();
			await output;
			return send({ t: 'written' });
	}
}

// One after the other. Other errors than these end the process.
let queue = Promise.resolve();
process.on('message', (message: ToChild | { t: 'took' }) => {
	if (message.t === 'took') return flow.took();
	// The message under way waits for it, so it does not go through the queue.
	if (message.t === 'answer') {
		answered(message.answer);
		return tell({ t: 'took' });
	}
	queue = queue
		.then(() => take(message))
		.then(
			() => tell({ t: 'took' }),
			(error: unknown) => {
				if (!(error instanceof Refused)) throw error;
				tell({ t: 'refused', code: error.code, reason: error.message, where: error.where });
			},
		);
});
