// worker.ts - a thread that computes the sheets that the main thread (pool.ts) has given it, one after the other: the evaluator
// has the cells, the time zone and the random numbers of one sheet at a time.
import { parentPort, workerData } from 'node:worker_threads';
import { Evaluator } from '../gateway/web/src/formulas/evaluator';
import { Beat } from './beat';
import type { FromThread, ToThread } from './messages';
import { ComputedSheet } from './sheet';

const beat = new Beat(workerData as SharedArrayBuffer);
const port = parentPort!;
const evaluator = new Evaluator();
const sheets = new Map<string, ComputedSheet>();

const hooks = {
	alive: (formula: string) => beat.tell(formula),
	pause: () => new Promise<void>((resolve) => setImmediate(resolve)),
};

/** Why a sheet cannot be computed. */
const broken = new Map<string, string>();

function take(message: Exclude<ToThread, { t: 'compute' }>): void {
	if (message.t === 'open') {
		broken.delete(message.sheet);
		sheets.set(message.sheet, new ComputedSheet(evaluator, message.stopped, message.off, hooks));
		return;
	}
	const sheet = sheets.get(message.sheet);
	switch (message.t) {
		case 'properties':
			return sheet?.setProperties(message.rows, message.bytes, message.tab);
		case 'cells':
			return sheet?.addCells(message.rows, message.bytes, message.tab);
		case 'edits':
			return sheet?.addEdits(message.bytes, message.read, message.tab);
		case 'names':
			return sheet?.setNames(message.names);
		case 'tab':
			return sheet?.setTab(message.tab, message.state);
		case 'stored':
			return sheet?.stored();
		case 'close':
			broken.delete(message.sheet);
			sheets.delete(message.sheet);
	}
}

async function compute({ sheet: id, seq, others }: Extract<ToThread, { t: 'compute' }>): Promise<FromThread> {
	const sheet = sheets.get(id);
	if (!sheet)
		return {
			t: 'failed',
			message: broken.get(id) ?? 'the thread has not got it',
		};
	const values = await sheet.compute(seq, others);
	if (!values) return { t: 'wants', tabs: sheet.takeWants() };
	return { t: 'computed', values, weight: sheet.weight };
}

/** What a thread has got wrong of a sheet, it has to be told anew. */
function fail(id: string, error: unknown): string {
	sheets.delete(id);
	broken.set(id, String(error));
	return String(error);
}

// Each `compute` has one answer, and nothing else has: the main thread has one job at a time here.
port.on('message', (message: ToThread) => {
	beat.tell('');
	if (message.t !== 'compute') {
		try {
			take(message);
		} catch (error) {
			fail(message.sheet, error);
		}
		beat.tell('');
		return;
	}
	compute(message)
		.catch((error: unknown): FromThread => ({
			t: 'failed',
			message: fail(message.sheet, error),
		}))
		.then((answer) => {
			beat.tell('');
			port.postMessage(answer);
		});
});
port.postMessage({ t: 'ready' });
