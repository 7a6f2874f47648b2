// worker.ts - computes the formulas of a sheet. The page (view/formulas/computing.ts) tells it the cells, and ends it if a
// formula takes too long.
import { Calculation } from './calculation';
import { Evaluator } from './evaluator';
import type { FromWorker, ToWorker } from './messages';
import { Teller } from './tell';

const post = (message: FromWorker): void => self.postMessage(message);

const { port1, port2 } = new MessageChannel();
const waiting: (() => void)[] = [];
port1.onmessage = () => waiting.shift()?.();
/** Messages that have arrived before are handled first. */
const pause = (): Promise<void> =>
	new Promise((resolve) => {
		waiting.push(resolve);
		port2.postMessage(null);
	});

/** Tells the page: its onerror is called. */
const failed = (error: unknown): void => {
	setTimeout(() => {
		throw error;
	}, 0);
};

const evaluator = new Evaluator();
let teller: Teller;

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
	if (data.t === 'start') {
		teller = new Teller(new Calculation(evaluator, { stopped: new Set(data.stopped), careful: data.careful, post, pause, failed }));
		evaluator.changedAll();
		return post({ t: 'ready' });
	}
	teller.tell(data);
	if (data.t === 'cells' || data.t === 'edits') post({ t: 'alive' });
};
