// colours.ts - the colours of a workbook, which may be of its theme or of a palette, as #rrggbb.
import { type Attributes, isTrue, numberOf, readXml } from './xml';
import type { Zip } from './zip';

const bright = ['000000', 'ffffff', 'ff0000', '00ff00', '0000ff', 'ffff00', 'ff00ff', '00ffff'];
const standardPalette = [
	...bright,
	...bright,
	...['800000', '008000', '000080', '808000', '800080', '008080', 'c0c0c0', '808080', '9999ff', '993366', 'ffffcc', 'ccffff', '660066', 'ff8080'],
	...['0066cc', 'ccccff', '000080', 'ff00ff', 'ffff00', '00ffff', '800080', '800000', '008080', '0000ff', '00ccff', 'ccffff', 'ccffcc', 'ffff99'],
	...['99ccff', 'ff99cc', 'cc99ff', 'ffcc99', '3366ff', '33cccc', '99cc00', 'ffcc00', 'ff9900', 'ff6600', '666699', '969696', '003366', '339966'],
	...['003300', '333300', '993300', '993366', '333399', '333333'],
];
const standardTheme = ['ffffff', '000000', 'eeece1', '1f497d', '4f81bd', 'c0504d', '9bbb59', '8064a2', '4bacc6', 'f79646', '0000ff', '800080'];
/** The colours of a theme by their names, in the order of their numbers. */
const themeNames = ['lt1', 'dk1', 'lt2', 'dk2', 'accent1', 'accent2', 'accent3', 'accent4', 'accent5', 'accent6', 'hlink', 'folHlink'];

/** Lighter (above 0) or darker by this part, as spreadsheets do it: the lightness of HSL changes. */
function tinted(colour: string, tint: number): string {
	const [r, g, b] = [0, 2, 4].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255) as [number, number, number];
	const [most, least] = [Math.max(r, g, b), Math.min(r, g, b)];
	const old = (most + least) / 2;
	const lightness = tint < 0 ? old * (1 + tint) : old * (1 - tint) + tint;
	const spread = most - least;
	const saturation = spread === 0 ? 0 : spread / (1 - Math.abs(2 * old - 1));
	const hue = spread === 0 ? 0 : most === r ? ((g - b) / spread + 6) % 6 : most === g ? (b - r) / spread + 2 : (r - g) / spread + 4;
	const channel = (at: number): string => {
		const k = (at + hue * 2) % 12;
		const value = lightness - saturation * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
		return Math.round(Math.min(Math.max(value, 0), 1) * 255)
			.toString(16)
			.padStart(2, '0');
	};
	return channel(0) + channel(8) + channel(4);
}

export class Colours {
	private readonly theme = [...standardTheme];
	private readonly palette = [...standardPalette];

	async readTheme(zip: Zip, part: string): Promise<void> {
		let at = -1;
		let isScheme = false;
		await readXml(zip, part, {
			open: (name, attributes) => {
				if (name === 'clrScheme') isScheme = true;
				if (!isScheme) return;
				if (themeNames.includes(name)) at = themeNames.indexOf(name);
				const colour = name === 'srgbClr' ? attributes['val'] : name === 'sysClr' ? attributes['lastClr'] : undefined;
				if (at >= 0 && colour && /^[0-9a-f]{6}$/i.test(colour)) this.theme[at] = colour.toLowerCase();
			},
			close: (name) => {
				if (name === 'clrScheme') isScheme = false;
			},
		});
	}

	/** A colour of the palette by its number; what is none stays as it is. */
	setPalette(number: number, rgb: string): void {
		if (/^[0-9a-f]{6}$/i.test(rgb)) this.palette[number] = rgb.toLowerCase();
	}

	/** The colour that the attributes say; undefined: none, or the usual one. */
	read(attributes: Attributes): string | undefined {
		const { rgb, theme, indexed, auto } = attributes;
		if (isTrue(auto)) return undefined;
		const named = theme !== undefined ? this.theme[Number(theme)] : indexed !== undefined ? this.palette[Number(indexed)] : undefined;
		const own = /^(?:[0-9a-f]{2})?([0-9a-f]{6})$/i.exec(rgb ?? '')?.[1]?.toLowerCase();
		const colour = own ?? named;
		if (colour === undefined) return undefined;
		const tint = Math.max(-1, Math.min(numberOf(attributes['tint']) ?? 0, 1));
		return `#${tint === 0 ? colour : tinted(colour, tint)}`;
	}
}
