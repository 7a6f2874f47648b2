// The live connection: what is sent when, what is shown, and what survives a lost connection.
import { describe, expect, it } from 'vitest';
import { Collab } from '../src/collab';
import { World } from './helpers';

async function connected(content: string[] = []) {
	const world = new World();
	const collab = new Collab('ann', world.surroundings, world);
	collab.start();
	await world.pass(0);
	world.socket.welcome(content);
	return { world, collab };
}

const echo = (row: number, col: number, content: string, username = 'ann', info?: unknown) => ({ row, col, content, username, ...(info ? { info } : {}) });

describe('own edits', () => {
	it('go out at once and are saved when their echo comes', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 1, col: 2, content: 'x' }]);
		expect(world.socket.edits()).toEqual([{ row: 1, col: 2, content: 'x' }]);
		expect(world.status.unsaved).toBe(1);
		world.socket.deliver('modify', echo(1, 2, 'x'));
		expect(world.status.unsaved).toBe(0);
		expect(world.edits).toEqual([]);
	});

	it('are not shown as saved by the echo of another edit', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'mine' }]);
		world.socket.deliver('modify', echo(0, 0, 'mine', 'bob'));
		world.socket.deliver('modify', echo(0, 1, 'mine'));
		world.socket.deliver('modify', echo(0, 0, 'my other tab'));
		expect(world.status.unsaved).toBe(1);
	});

	it('stay visible while others write the same cell before them in the order of the sheet', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'mine' }]);
		world.socket.deliver('modify', echo(0, 0, 'theirs', 'bob'));
		expect(world.edits).toEqual([]);
		world.socket.deliver('modify', echo(0, 0, 'mine'));
		world.socket.deliver('modify', echo(0, 0, 'later', 'bob'));
		expect(world.edits.map(({ content }) => content)).toEqual(['later']);
	});

	it('of one cell are confirmed one by one', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'a' }]);
		collab.edit([{ row: 0, col: 0, content: 'b' }]);
		expect(world.status.unsaved).toBe(2);
		world.socket.deliver('modify', echo(0, 0, 'a'));
		expect(world.edits).toEqual([]);
		expect(world.status.unsaved).toBe(1);
		world.socket.deliver('modify', echo(0, 0, 'b'));
		expect(world.status.unsaved).toBe(0);
	});

	it('that are refused give way to what the gateway holds', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 3, col: 3, content: 'mine' }]);
		world.socket.deliver('refused', { row: 3, col: 3, reason: 'locked', content: 'theirs' });
		expect(world.edits).toEqual([{ row: 3, col: 3, content: 'theirs' }]);
		expect(world.refused).toEqual([{ place: { row: 3, col: 3 }, reason: 'locked', wasEdit: true }]);
		expect(world.status.unsaved).toBe(0);
	});
});

describe('a refusal that comes late', () => {
	it('does not bring back what somebody else has overwritten meanwhile', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'mine' }]);
		world.socket.deliver('modify', echo(0, 0, 'newer', 'bob'));
		world.socket.deliver('refused', { row: 0, col: 0, reason: 'locked', content: 'older' });
		expect(world.edits.map(({ content }) => content)).toEqual(['newer']);
	});

	it('does not undo a later edit of the cell that was accepted', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'refused' }]);
		collab.edit([{ row: 0, col: 0, content: 'accepted' }]);
		world.socket.deliver('modify', echo(0, 0, 'accepted'));
		expect(world.status.unsaved).toBe(0);
		world.socket.deliver('refused', { row: 0, col: 0, reason: 'locked', content: 'old' });
		expect(world.edits).toEqual([]);
	});
});

it('sends of a text that no cell can hold only enough to be refused', async () => {
	const { world, collab } = await connected();
	collab.edit([{ row: 0, col: 0, content: 'x'.repeat(5_000_000) }]);
	expect((world.socket.edits()[0].content as string).length).toBe(40000);
	world.socket.deliver('refused', { row: 0, col: 0, reason: 'size', content: 'before' });
	expect(world.edits).toEqual([{ row: 0, col: 0, content: 'before' }]);
});

describe('a lost connection', () => {
	it('is tried again with growing pauses, and asks each time where the sheet is', async () => {
		const { world } = await connected();
		let asked = 0;
		world.gateway = async () => {
			asked++;
			throw new Error('nobody there');
		};
		world.socket.drop();
		expect(world.status.state).toBe('reconnecting');
		await world.pass(250 + 500 + 1000);
		expect(asked).toBe(3);
		world.gateway = async () => ({ url: 'ws://b/sheetws' });
		await world.pass(2000);
		expect(world.socket.url).toBe('ws://b/sheetws');
		world.socket.welcome(['new']);
		expect(world.status.state).toBe('connected');
		expect(world.snapshots.at(-1)?.first).toBe(false);
	});

	it('keeps edits that were never sent, and those without an echo, and sends them again', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'lost on the way' }]);
		world.socket.drop();
		collab.edit([{ row: 0, col: 1, content: 'typed offline' }]);
		await world.pass(300);
		world.socket.welcome([]);
		expect(world.socket.edits()).toEqual([
			{ row: 0, col: 0, content: 'lost on the way' },
			{ row: 0, col: 1, content: 'typed offline' },
		]);
		expect(world.snapshots.at(-1)?.overlay.map(({ content }) => content)).toEqual(['lost on the way', 'typed offline']);
	});

	it('does not send again what the new content shows to have arrived', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'arrived' }]);
		world.socket.drop();
		await world.pass(300);
		world.socket.welcome(['arrived']);
		expect(world.socket.edits()).toEqual([]);
		expect(world.status.unsaved).toBe(0);
	});

	it('sends only the newest of several edits of a cell', async () => {
		const { world, collab } = await connected();
		collab.edit([{ row: 0, col: 0, content: 'a', info: { bl: 1 } }]);
		collab.edit([{ row: 0, col: 0, content: 'b' }]);
		world.socket.drop();
		await world.pass(300);
		world.socket.welcome(['']);
		expect(world.socket.edits()).toEqual([{ row: 0, col: 0, content: 'b', info: { bl: 1 } }]);
		expect(world.status.unsaved).toBe(1);
	});

	it('is also one that brings no content in time', async () => {
		const world = new World();
		new Collab('ann', world.surroundings, world).start();
		await world.pass(15000);
		expect(world.sockets[0].closed).toBe(true);
		await world.pass(300);
		expect(world.sockets.length).toBe(2);
	});

	it('takes the lock of the open cell again', async () => {
		const { world, collab } = await connected();
		collab.setEditing({ row: 5, col: 6 });
		world.socket.drop();
		await world.pass(300);
		world.socket.welcome();
		expect(world.socket.sent[0]).toEqual({ msgType: 'acquire', body: { row: 5, col: 6 } });
	});

	it('is not tried again when the gateway has no sheet for us', async () => {
		const { world } = await connected();
		world.gateway = async () => ({ stop: 'permission' });
		world.socket.drop();
		await world.pass(60000);
		expect(world.stopped).toBe('permission');
		expect(world.sockets.length).toBe(1);
	});

	it.each([[1009, 'large'], [4401, 'token'], [4403, 'permission'], [4404, 'missing'], [4410, 'trash']])('closed with %i is not tried again: %s', async (code, reason) => {
		const { world } = await connected();
		world.socket.drop(code);
		await world.pass(60000);
		expect(world.stopped).toBe(reason);
		expect(world.sockets.length).toBe(1);
	});

	it('is tried at once when the network is back', async () => {
		const { world, collab } = await connected();
		world.socket.drop();
		collab.retryNow();
		await world.pass(0);
		expect(world.sockets.length).toBe(2);
		world.socket.welcome();
		await world.pass(20000);
		expect(world.sockets.length).toBe(2);
	});
});

describe('locks', () => {
	it('of others are told, own ones are not', async () => {
		const world = new World();
		const collab = new Collab('ann', world.surroundings, world);
		collab.start();
		await world.pass(0);
		world.socket.welcome([], 10, [
			{ Row: 1, Col: 1, Username: 'bob' },
			{ Row: 2, Col: 2, Username: 'ann' },
		]);
		expect(world.locks).toEqual([{ row: 1, col: 1, username: 'bob' }]);
		expect(collab.holderOf({ row: 1, col: 1 })).toBe('bob');
		expect(collab.holderOf({ row: 2, col: 2 })).toBe(null);
		world.socket.deliver('release', { row: 1, col: 1, username: 'bob' });
		expect(world.locks).toEqual([]);
	});

	it('are taken when a cell is opened, renewed, and given back', async () => {
		const { world, collab } = await connected();
		collab.setEditing({ row: 1, col: 1 });
		await world.pass(21000);
		collab.setEditing({ row: 2, col: 1 });
		collab.setEditing(null);
		await world.pass(30000);
		expect(world.socket.sent.map(({ msgType, body }) => `${msgType} ${body.row}`)).toEqual([
			'acquire 1', 'acquire 1', 'acquire 1', 'release 1', 'acquire 2', 'release 2',
		]);
	});

	it('that are denied are told without touching edits', async () => {
		const { world, collab } = await connected();
		collab.setEditing({ row: 1, col: 1 });
		world.socket.deliver('refused', { row: 1, col: 1, reason: 'locked', content: 'theirs' });
		expect(world.refused).toEqual([{ place: { row: 1, col: 1 }, reason: 'locked', wasEdit: false }]);
		expect(world.edits).toEqual([]);
	});
});

it('stops at content that it cannot read, rather than show something wrong', async () => {
	const { world } = await connected();
	world.socket.deliver('modify', { row: 'one', col: 0, content: 'x', username: 'bob' });
	expect(world.stopped).toBe('protocol');
});

it('passes over messages of a kind that it does not know', async () => {
	const { world } = await connected();
	world.socket.deliver('weather', { sunny: true });
	expect(world.status.state).toBe('connected');
});

describe('a sheet that a transaction holds', () => {
	it('shows whose it is and for how long, until it is free or the connection is lost', async () => {
		for (const end of ['free', 'lost']) {
			const { world } = await connected();
			world.socket.deliver('held', { held: true, holder: 'bob', application: 'psql', ms: 1200 });
			expect(world.status.held).toEqual({ holder: 'bob', seconds: 1 });
			await world.pass(3000);
			expect(world.status.held).toEqual({ holder: 'bob', seconds: 4 });
			if (end === 'free') world.socket.deliver('held', { held: false, holder: '', application: '', ms: 0 });
			else world.socket.onclose?.({ code: 1006 });
			expect(world.status.held).toBeNull();
		}
	});
});
