// worker.ts - computes the formulas of a sheet. The page (view/formulas/computing.ts) tells it the cells, and ends it if a
// formula takes too long.
import { Calculation } from './calculation';
import { Evaluator } from './evaluator';
import { setZone } from './functions';
import type { FromWorker, ToWorker } from './messages';

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
let calculation: Calculation;

self.onmessage = ({ data }: MessageEvent<ToWorker>) => {
	switch (data.t) {
		case 'start':
			calculation = new Calculation(evaluator, { stopped: new Set(data.stopped), careful: data.careful, post, pause, failed });
			evaluator.changedAll();
			return post({ t: 'ready' });
		case 'cells':
			calculation.set(data.n, data.cells, data.formulas, data.more);
			return post({ t: 'alive' });
		case 'move':
			return calculation.move(data.n, data.change);
		case 'hidden':
			return calculation.hide(data.n, data.rows);
		case 'clock':
			setZone(data.zone);
			return calculation.redraw(data.n);
		case 'seq':
			return calculation.draw(data.n, data.seq);
	}
};
