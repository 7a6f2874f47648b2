// pictures.test.ts - what is said of a picture whose cell cannot take it when the upload is done.
import { expect, test, vi } from 'vitest';
import type { PictureSheet } from '../../src/pages/pictures';

vi.mock('../../src/dom', () => ({ h: () => null, notify: vi.fn(), remind: vi.fn() }));
vi.mock('../../src/i18n', () => ({ t: (key: string, values: { cell: string }) => `${key} ${values.cell}` }));
vi.mock('../../src/files/pictures', () => ({ uploadPicture: () => Promise.resolve('the picture') }));

const { Pictures } = await import('../../src/pages/pictures');

test.each([
	['is not read', true, '', 'picture.unread B3'],
	['has been written meanwhile', false, 'other', 'picture.changed B3'],
	['is as it was', false, '', null],
])('a cell that %s', async (_state, unread, content, reason) => {
	const done = vi.fn();
	let now = '';
	const sheet: PictureSheet = {
		session: { token: 't', uid: 1, username: 'ann' },
		fid: 1,
		canEdit: () => true,
		contentAt: () => now,
		lacks: () => (unread ? 'large' : null),
		write: (edits) => done(edits, null),
		focus() {},
		offer: (edit, told) => done([edit], told),
		offerLost() {},
	};
	new Pictures(sheet).add([new File(['x'], 'a.png', { type: 'image/png' })], { row: 2, col: 1 });
	now = content;
	await vi.waitFor(() => expect(done).toHaveBeenCalledWith([{ row: 2, col: 1, content: 'the picture' }], reason));
});
