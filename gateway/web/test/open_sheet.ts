// open_sheet.ts - an open sheet for the tests: a session, a socket and a grid of their own, no gateway and no Univer.
import { expect, vi } from 'vitest';
import type { SessionEvents } from '../src/sheet/events';
import { SheetSession, type SessionOptions } from '../src/sheet/session';
import type { Socket } from '../src/v2/client';
import { keyOf } from '../src/v2/replica';
import type { Place, Style } from '../src/v2/messages';
import { TestGrid } from './person';

class Wire implements Socket {
	binaryType = '';
	onopen: (() => void) | null = null;
	onmessage: ((event: { data: unknown }) => void) | null = null;
	onclose: ((event: { code: number; reason: string }) => void) | null = null;
	said: Record<string, any>[] = [];
	send(data: string | Uint8Array): void {
		this.said.push(JSON.parse(data as string));
	}
	close(): void {}
	hear(message: object): void {
		this.onmessage?.({ data: JSON.stringify(message) });
	}
	operations(): unknown[] {
		return this.said.filter(({ t }) => t === 'op').map(({ edits }) => edits);
	}
}

export async function open(cells: unknown[] = [], role = 'editor', options: Partial<SessionOptions> = {}, hello: { uid?: number } = {}) {
	vi.useRealTimers();
	const wires: Wire[] = [];
	const grid = new TestGrid();
	const log: string[] = [];
	/** Whether something can be taken back, and made again. */
	const undo = [false, false];
	const frames: (() => void)[] = [];
	const events = new Proxy({} as SessionEvents, {
		get:
			(_, name: string) =>
			(...values: unknown[]) => {
				if (name === 'onSkipped' && (values[0] as Place[]).length > 0) log.push(`skipped ${(values[0] as Place[]).map(({ row, col }) => keyOf(row, col))}`);
				if (name === 'onRefused') log.push(`refused ${values[1]}`);
				if (name === 'onHindered') log.push(`hindered ${values[0]}`);
				if (name === 'onUnshown') log.push(`unshown ${keyOf((values[0] as Place).row, (values[0] as Place).col)}`);
				if (name === 'onUndoState') undo.splice(0, 2, ...(values as boolean[]));
				if (name === 'onLost') log.push(`lost ${JSON.stringify(values)}`);
				if (name === 'onTokenEnded' || name === 'onDenied') log.push(name);
				if (name === 'onRole' && values[0] !== role) log.push(`role ${values[0]}`);
			},
	});
	const session = new SheetSession(
		{
			sheet: 7,
			uid: hello.uid ?? 1,
			token: () => 't',
			locate: async () => 'ws://a',
			stopOf: () => null,
			open: () => (wires.push(new Wire()), wires.at(-1)!),
			schedule: (run) => frames.push(run),
			...options,
		},
		events,
	);
	session.start();
	const greet = async (more: object = {}) => {
		await vi.waitFor(() => expect(wires.at(-1)?.onopen).toBeTruthy());
		const wire = wires.at(-1)!;
		wire.onopen!();
		wire.hear({
			...{ t: 'hello', v: 2, session: 1, uid: 1, name: 's', role, seq: 5, epoch: 1, rows: 9, cols: 9, landed: 0, resumed: false },
			...{ retention: 604800, lease: 30, maxEdits: 16384, maxBytes: 1048576, peers: [], locks: [], ...hello, ...more },
		});
		return wire;
	};
	const wire = await greet();
	session.attach(grid);
	for (const id of [1, 2]) wire.hear({ t: 'block', id, row: 0, col: 0, toRow: 8, toCol: 8, seq: 5, more: false, cells });
	const frame = () => frames.splice(0).forEach((run) => run());
	/** The user types into a cell, which the grid reads as it does in view/univer.ts. */
	const type = (row: number, col: number, content?: string, style?: Style) => {
		session.flush();
		const before = grid.read(row, col);
		const after = { content: content ?? before.content, style: style === undefined ? before.style : style };
		grid.cells.set(keyOf(row, col), after);
		session.changed([{ row, col, before, after }]);
	};
	let seq = 5;
	/** Edits arrive, which the grid shows in the next frame. */
	const hear = (...list: unknown[][]) => wire.hear({ t: 'edits', seq: ++seq, more: false, edits: list });
	const edits = (...list: unknown[][]) => (hear(...list), frame());
	const ack = (n: number) => wire.hear({ t: 'ack', n, seq });
	return { session, wire, grid, log, undo, type, hear, edits, ack, frame, greet, wires };
}
