// worker.ts - starts the worker that computes formulas. The editor is a classic script, which has no import.meta.url.
import url from '../../formulas/worker?worker&url';
import type { WorkerLike } from './computing';

export const startWorker = (): WorkerLike => new Worker(url, { type: 'module' });
