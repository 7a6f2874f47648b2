// colours.ts - the colours of calendars. An account chooses one of these; its calendar programs may choose any.
import type { Calendar } from './http';

/** White text has at least 4.5:1 on each of them. */
export const colours = ['#0b6b50', '#1d5fbf', '#7a3bd1', '#b3261e', '#8a5200', '#00647a', '#a3206a', '#4d5a55'] as const;

export const colourOf = ({ id, colour }: Pick<Calendar, 'id' | 'colour'>): string => colour ?? colours[id % colours.length]!;

/** The relative luminance of WCAG. */
function luminance(colour: string): number {
	const [red, green, blue] = [1, 3, 5].map((at) => {
		const part = parseInt(colour.slice(at, at + 2), 16) / 255;
		return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
	});
	return 0.2126 * red! + 0.7152 * green! + 0.0722 * blue!;
}

/** Black or white, whichever has more contrast. */
export const textOn = (colour: string): string => (luminance(colour) > 0.179 ? '#000' : '#fff');
