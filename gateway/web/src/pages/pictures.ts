// pictures.ts - pictures that are pasted or dropped into cells: which cell each of them is for while it is uploaded. The cell has
// the address of the picture, as a link with its name, when the upload is done.
import type { Session } from '../api';
import { cellName } from '../content';
import { h, notify, remind } from '../dom';
import { t } from '../i18n';
import { movePlace } from '../v2/lines';
import type { CellEdit, Place, Range, StructureEdit } from '../v2/messages';
import { isPicture } from '../view/input/pictures';

export interface PictureSheet {
	session: Session;
	fid: number;
	canEdit(): boolean;
	contentAt(place: Place): string;
	/** Whether cells have not been read, so that `contentAt` tells nothing. */
	lacks(ranges: Range[]): string | null;
	write(edits: CellEdit[]): void;
	/** Gives the cells the focus. */
	focus(): void;
	/** Offers what has no cell any more, or whose cell has another content now. */
	offer(edit: CellEdit, reason: string): void;
	offerLost(content: string): void;
}

/** A picture whose upload has not ended. place: null if its cell was deleted. */
interface Job {
	file: File;
	place: Place | null;
	/** The content of the cell when the picture was pasted. */
	before: string;
}

const named = ({ row, col }: Place) => ({ cell: cellName(row, col) });

export class Pictures {
	readonly element = h('span', { class: 'uploads' });
	private readonly jobs = new Set<Job>();
	private readonly ended = new AbortController();
	/** The uploads, one after another. */
	private work = Promise.resolve();

	constructor(private readonly sheet: PictureSheet) {}

	/** Number of pictures that are not uploaded yet. */
	get count(): number {
		return this.jobs.size;
	}

	/** Uploads the pictures among the files, for a cell and those below it. */
	add(files: readonly File[], place: Place): void {
		if (!this.sheet.canEdit()) return remind(t('blocked.role'));
		const pictures = files.filter(isPicture);
		if (pictures.length < files.length) notify(t('picture.kinds'), 'problem');
		pictures.forEach((file, i) => {
			const at = { row: place.row + i, col: place.col };
			const job: Job = { file, place: at, before: this.sheet.contentAt(at) };
			this.jobs.add(job);
			this.work = this.work.then(() => this.run(job));
		});
	}

	private async run(job: Job): Promise<void> {
		const { sheet, ended } = this;
		try {
			const { uploadPicture } = await import('../files/pictures');
			if (ended.signal.aborted) return;
			const content = await uploadPicture(sheet.session, sheet.fid, job.file, this.element, () => sheet.focus(), ended.signal);
			if (content === null || ended.signal.aborted) return;
			const { place } = job;
			if (!place) sheet.offerLost(content);
			else if (sheet.lacks([{ ...place, toRow: place.row, toCol: place.col }])) sheet.offer({ ...place, content }, t('picture.unread', named(place)));
			else if (sheet.contentAt(place) !== job.before) sheet.offer({ ...place, content }, t('picture.changed', named(place)));
			else sheet.write([{ ...place, content }]);
		} catch {
			notify(t('error.unreachable'), 'problem');
		} finally {
			this.jobs.delete(job);
		}
	}

	/** Rows or columns have moved. */
	move(change: StructureEdit): void {
		for (const job of this.jobs) job.place = (job.place && movePlace(job.place, change)) ?? null;
	}

	/** Cancels what is not uploaded. */
	end(): void {
		this.ended.abort();
	}
}
