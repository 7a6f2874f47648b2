/*
 * window.mjs - a browser window that is measured: what it has loaded, when a text was painted, and what its main thread did.
 *
 * A text is painted when it has been drawn into a canvas and the frame with that drawing has been rendered.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** Runs in the page before its scripts: notes the first paint of each text, and counts bytes of WebSockets. */
function observe() {
	const bench = (window.bench = { painted: new Map(), bytes: 0, frames: [] });
	let inFrame = false;
	const nextFrame = window.requestAnimationFrame.bind(window);
	window.requestAnimationFrame = (run) =>
		nextFrame((time) => {
			inFrame = true;
			try {
				run(time);
			} finally {
				inFrame = false;
			}
		});
	/* A message that is sent in a frame arrives when the frame has been rendered. */
	const { port1, port2 } = new MessageChannel();
	let drawn = [];
	const rendered = () => port2.postMessage(null);
	port1.onmessage = () => {
		const mark = { ms: performance.now(), at: performance.timeOrigin + performance.now(), bytes: bench.bytes };
		for (const text of drawn.splice(0)) bench.painted.set(text, mark);
	};
	const fillText = CanvasRenderingContext2D.prototype.fillText;
	CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
		if (!bench.painted.has(text)) {
			bench.painted.set(text, null);
			if (drawn.push(text) === 1) inFrame ? rendered() : nextFrame(rendered);
		}
		return fillText.call(this, text, ...rest);
	};
	window.WebSocket = class extends WebSocket {
		constructor(...address) {
			super(...address);
			this.addEventListener('message', ({ data }) => (bench.bytes += data.length ?? data.byteLength));
		}
	};
	bench.countFrames = () => {
		let last = performance.now();
		const frame = (now) => {
			bench.frames.push(now - last);
			last = now;
			nextFrame(frame);
		};
		nextFrame(frame);
	};
}

export class Window {
	/** counts: what is loaded. The browser then notes who asked for it, which takes V8 up to half a second in a large script. */
	static async open(context, counts = false) {
		const page = await context.newPage();
		const window = Object.assign(new Window(), { page, loaded: 0, lastLoad: 0 });
		page.setDefaultTimeout(60000);
		await page.addInitScript(observe);
		window.devtools = await context.newCDPSession(page);
		if (counts) await window.countLoads();
		await window.devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
		return window;
	}

	/** Adds up what comes over HTTP, with headers; nothing for what the cache has. */
	async countLoads() {
		const cached = new Set();
		const { devtools } = this;
		await devtools.send('Network.enable');
		devtools.on('Network.requestServedFromCache', ({ requestId }) => cached.add(requestId));
		devtools.on('Network.responseReceived', ({ requestId, response }) => response.fromDiskCache && cached.add(requestId));
		devtools.on('Network.loadingFinished', ({ requestId, encodedDataLength }) => {
			if (!cached.has(requestId)) this.loaded += encodedDataLength;
			this.lastLoad = Date.now();
		});
	}

	/** Waits until nothing has been loaded for a second; kB. */
	async loadedKilobytes() {
		do await sleep(200);
		while (Date.now() - this.lastLoad < 1000);
		return this.loaded / 1000;
	}

	/** When the text was painted first: {ms since navigation, at (ms since 1970), bytes of WebSockets until then}. */
	async painted(text, timeout = 60000) {
		const found = await this.page.waitForFunction((shown) => window.bench?.painted.get(shown), text, { polling: 10, timeout });
		return found.jsonValue();
	}

	/** Milliseconds of CPU that the main thread has taken, which does not depend on other load. */
	async mainThread() {
		const { metrics } = await this.devtools.send('Performance.getMetrics');
		return metrics.find(({ name }) => name === 'TaskDuration').value * 1000;
	}

	/** Milliseconds of CPU in a second in which nobody does anything. */
	async idleMainThread() {
		const [before, start] = [await this.mainThread(), Date.now()];
		await sleep(4000);
		return ((await this.mainThread()) - before) / ((Date.now() - start) / 1000);
	}

	/** CPU of the main thread in `run`, above that of an idle page in the same time. */
	async mainThreadOf(run) {
		const [before, start] = [await this.mainThread(), Date.now()];
		await run();
		const [after, milliseconds] = [await this.mainThread(), Date.now() - start];
		await sleep(Math.min(milliseconds, 2000));
		const idle = (await this.mainThread()) - after;
		return after - before - idle * (milliseconds / Math.min(milliseconds, 2000));
	}

	async heapMegabytes() {
		await this.devtools.send('HeapProfiler.collectGarbage');
		return (await this.devtools.send('Runtime.getHeapUsage')).usedSize / 1e6;
	}

	content(row, col) {
		return this.page.evaluate(([r, c]) => window.pgSheet?.contentOf(r, c)?.content, [row, col]);
	}

	get grid() {
		return this.page.locator('canvas[id^="univer-sheet-main-canvas"]');
	}

	/** Waits until everything has been read and saved. */
	async saved() {
		await this.page.locator('.status', { hasText: 'Saved' }).waitFor();
		await sleep(500);
	}
}
