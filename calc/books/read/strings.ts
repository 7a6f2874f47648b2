// strings.ts - the texts that the cells of a workbook share.
import { contentOfText } from './sheet';
import { readXml, unescapeText } from './xml';
import type { Zip } from './zip';

interface Text {
	content: string;
	/** Parts of it have formats. */
	rich: boolean;
}

export class Strings {
	private readonly texts: Text[] = [];

	at(index: string): Text | undefined {
		return /^[0-9]+$/.test(index) ? this.texts[Number(index)] : undefined;
	}

	async read(zip: Zip, part: string): Promise<void> {
		let text = '';
		let rich = false;
		let reads = false;
		await readXml(zip, part, {
			open: (name) => {
				if (name === 'si') {
					text = '';
					rich = false;
				}
				if (name === 't') reads = true;
				if (name === 'rPr') rich = true;
				return name === 'rPh' || name === 'rPr' || name === 'extLst' ? false : undefined;
			},
			text: (characters) => {
				if (reads) text += characters;
			},
			close: (name) => {
				if (name === 't') reads = false;
				if (name === 'si') this.texts.push({ content: contentOfText(unescapeText(text)), rich });
			},
		});
	}
}
