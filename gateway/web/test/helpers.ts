// helpers.ts - the boundary of collab.ts for tests: a socket, a clock and a gateway to find, all under the test's hand.
import type { CollabListener, FindGateway, SocketLike, Status, StopReason } from '../src/collab';
import type { CellEdit, CellLock, CellPlace, Snapshot } from '../src/protocol';

export class HandSocket implements SocketLike {
	onmessage: ((event: { data: unknown }) => void) | null = null;
	onclose: ((event: { code: number }) => void) | null = null;
	sent: { msgType: string; body: Record<string, unknown> }[] = [];
	closed = false;

	constructor(readonly url: string) {}

	send(text: string): void {
		this.sent.push(JSON.parse(text));
	}
	close(): void {
		this.closed = true;
	}
	/** A frame from the gateway. */
	deliver(msgType: string, body: unknown): void {
		this.onmessage?.({ data: JSON.stringify({ msgType, body }) });
	}
	welcome(content: string[] = [], columns = 10, cellLocks: unknown[] = []): void {
		this.deliver('onConn', { name: 'sheet', columns, content, cellLocks });
	}
	drop(code = 1006): void {
		this.onclose?.({ code });
	}
	edits(): Record<string, unknown>[] {
		return this.sent.filter(({ msgType }) => msgType === 'modify').map(({ body }) => body);
	}
}

export class World implements CollabListener {
	sockets: HandSocket[] = [];
	timers: { at: number; run: () => void }[] = [];
	now = 0;
	gateway: FindGateway = async () => ({ url: 'ws://a/sheetws' });

	snapshots: { snapshot: Snapshot; overlay: CellEdit[]; first: boolean }[] = [];
	edits: CellEdit[] = [];
	locks: CellLock[] = [];
	refused: { place: CellPlace; reason: string; wasEdit: boolean }[] = [];
	status: Status = { state: 'connecting', unsaved: 0, retryIn: 0, held: null };
	stopped: StopReason | null = null;

	surroundings = {
		findGateway: () => this.gateway(),
		openSocket: (url: string) => {
			const socket = new HandSocket(url);
			this.sockets.push(socket);
			return socket;
		},
		setTimer: (run: () => void, milliseconds: number) => {
			const timer = { at: this.now + milliseconds, run };
			this.timers.push(timer);
			return () => {
				this.timers = this.timers.filter((other) => other !== timer);
			};
		},
		now: () => this.now,
		random: () => 1,
	};

	get socket(): HandSocket {
		return this.sockets[this.sockets.length - 1];
	}

	/** Lets time pass, and everything that waits for it happen. */
	async pass(milliseconds: number): Promise<void> {
		const end = this.now + milliseconds;
		for (;;) {
			await settle();
			const next = this.timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
			if (!next) break;
			this.timers = this.timers.filter((timer) => timer !== next);
			this.now = next.at;
			next.run();
		}
		this.now = end;
		await settle();
	}

	onSnapshot(snapshot: Snapshot, overlay: CellEdit[], first: boolean): void {
		this.snapshots.push({ snapshot, overlay, first });
	}
	onEdits(edits: CellEdit[]): void {
		this.edits.push(...edits);
	}
	onLocks(locks: CellLock[]): void {
		this.locks = locks;
	}
	onRefused(place: CellPlace, reason: string, wasEdit: boolean): void {
		this.refused.push({ place, reason, wasEdit });
	}
	onStatus(status: Status): void {
		this.status = status;
	}
	onStopped(reason: StopReason): void {
		this.stopped = reason;
	}
}

async function settle(): Promise<void> {
	for (let i = 0; i < 8; i++) await Promise.resolve();
}
