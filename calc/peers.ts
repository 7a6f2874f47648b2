// peers.ts - several calcs share the work: each sheet belongs to the one for which a hash of both is the highest. While they do not
// agree on who is there, two may compute a sheet, which does no harm.

function hash(text: string): number {
	let h = 0x811c9dc5;
	for (let i = 0; i < text.length; i++) h = Math.imul(h ^ text.charCodeAt(i), 0x01000193);
	h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
	h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
	return (h ^ (h >>> 16)) >>> 0;
}

export class Peers {
	private others: string[] = [];

	constructor(private readonly name: string) {}

	/** Returns whether others are there now. */
	set(names: string[]): boolean {
		const others = names.filter((name) => name !== this.name).sort();
		const isNew = others.join('\n') !== this.others.join('\n');
		this.others = others;
		return isNew;
	}

	get count(): number {
		return this.others.length;
	}

	isOwn(sheet: string): boolean {
		const own = hash(`${this.name}\n${sheet}`);
		return this.others.every((other) => {
			const theirs = hash(`${other}\n${sheet}`);
			return theirs < own || (theirs === own && other > this.name);
		});
	}
}
