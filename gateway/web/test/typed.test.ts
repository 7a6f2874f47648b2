// typed.test.ts - what the editor shows for a cell is the same content when it is entered again; what becomes of half-typed text.
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { formatDate, formatTime, numberContent, textContent } from '../src/content';
import { Draft } from '../src/pages/draft';
import { cellOfContent, contentOfCell } from '../src/cell';
import { editedText, typedContent } from '../src/view/input/typed';
import { randomOf, type Random } from './person';

afterAll(() => vi.unstubAllGlobals());
afterEach(() => vi.useRealTimers());

const formats = [
	undefined,
	'0.00',
	'#,##0',
	'0%',
	'0.00%',
	'"$"#,##0.00',
	'0.00E+00',
	'# ?/?',
	'yyyy-mm-dd',
	'dd/mm/yyyy',
	'yyyy-mm-dd hh:mm:ss',
	'hh:mm',
	'hh:mm:ss.000',
	'[h]:mm:ss',
	'h:mm AM/PM',
	'General',
	'@',
];
const texts = [
	'a',
	'A1',
	'007',
	'1/2',
	'1,234.5',
	'1,5',
	'1.234,56',
	'12,5 %',
	'12 %',
	'$5',
	'(5)',
	'.5',
	'1e400',
	'10:61',
	'9:30 pm',
	'25:30',
	'31/12/2024',
	'12/31/24',
	'1 March 2024',
	'2024年3月1日',
	'TRUE',
	'true',
	'=',
	'=x',
	'+',
	'-',
	"'",
	'’',
	'＇x',
	'＝1',
	'１２',
	' ',
	'\n',
	'\t',
	'\u00a0',
	'#',
	'0x1F',
	'Infinity',
	'12345678901234567',
	'May 5',
	'é',
	'☠',
];

const kinds: Record<string, (random: Random) => string> = {
	text: (random) => textContent(Array.from({ length: 1 + random(3) }, () => texts[random(texts.length)]).join(['', ' ', '-'][random(3)])),
	integer: (random) => numberContent(random(2e9) - 1e9),
	amount: (random) => numberContent((random(2e9) - 1e9) / 100),
	double: (random) => numberContent((random(2 ** 32) / 2 ** 32 + random(2 ** 32) / 2 ** 64) * 10 ** (random(60) - 30) * (random(2) ? 1 : -1)),
	boolean: (random) => ['TRUE', 'FALSE'][random(2)]!,
	day: (random) => formatDate(1 + random(59) + (random(2) && 60 + random(2_900_000))),
	moment: (random) => formatDate(61 + random(2_900_000) + random(86400) / 86400),
	'moment with milliseconds': (random) => formatDate(61 + random(2_900_000) + random(86_400_000) / 86_400_000),
	time: (random) => formatTime(random(86400) / 86400),
	'time with milliseconds': (random) => formatTime(random(86_400_000) / 86_400_000),
	duration: (random) => formatTime(random(36_000_000) / 86400),
	'duration with milliseconds': (random) => formatTime(random(2 ** 31) / 1000 / 86400),
	formula: (random) => `=${['A1', 'SUM(A1:B2)', '"x"', '1', ''][random(4)]}${['', ' ', '\n', '+1'][random(4)]}`,
};

const languages = [
	'en-US',
	'en-GB',
	'de-DE',
	'fr-FR',
	'sv-SE',
	'nl-NL',
	'fi-FI',
	'hu-HU',
	'zh-CN',
	'ja-JP',
	'ko-KR',
	'ar-EG',
	'he-IL',
	'fa-IR',
	'th-TH',
	'bg-BG',
	'lv-LV',
	'sl-SI',
];

test.each(languages)('in %s, a content that is edited and entered unchanged stays the same', (language) => {
	vi.stubGlobal('navigator', { language });
	const random = randomOf(languages.indexOf(language));
	for (const [kind, make] of Object.entries(kinds))
		for (let round = 0; round < 150; round++) {
			const format = formats[random(formats.length)];
			const cell = cellOfContent(make(random), format);
			const style = format === undefined ? (cell?.s as { n: { pattern: string } } | undefined) : { n: { pattern: format } };
			const content = contentOfCell(cell, cell?.f, style);
			// A cell with the format "text" takes every content as a text.
			if (content === '' || (format === '@' && cell?.t !== 1 && cell?.t !== 4)) continue;
			const text = (cell?.f ? null : editedText(content, style?.n.pattern)) ?? content;
			expect({ kind, format, text, content: typedContent(text, format) }).toEqual({ kind, format, text, content });
		}
});

/** The draft of a cell editor in which `type` types, and what is offered of it in a pause. */
function edit(cell = { content: '', style: null as { n: { pattern: string } } | null }) {
	vi.stubGlobal('navigator', { language: 'en-US' });
	vi.useFakeTimers();
	let text: string | null = null;
	const draft = new Draft(
		() => ({ editorText: () => text, contentOf: () => cell }),
		() => () => {},
	);
	const offered: string[] = [];
	const type = (typed: string | null) => void (text = typed);
	const denied = () => draft.whenPaused(({ row, content }) => offered.push(`${row}=${content}`));
	draft.edit({ row: 0, col: 0 });
	return { draft, type, denied, offered, wait: (ms: number) => vi.advanceTimersByTime(ms) };
}

test('a text in the editor that the cell shows, and does not have, is not saved yet', () => {
	const { draft, type } = edit({ content: '12.004', style: { n: { pattern: '0.00' } } });
	expect(draft.content).toBe(null);
	type(editedText('12.004', '0.00'));
	expect(draft.content).toBe(null);
	type('12.00');
	expect(draft.content).toEqual({ row: 0, col: 0, content: '12' });
});

test('what is typed without the lock is offered in the first pause, however late it begins', () => {
	const { type, denied, offered, wait } = edit();
	denied();
	wait(5000);
	for (const text of ['m', 'mi', 'mine']) {
		type(text);
		wait(900);
	}
	expect(offered).toEqual([]);
	wait(2000);
	expect(offered).toEqual(['0=mine']);
	wait(5000);
	expect(offered).toEqual(['0=mine']);
});

test('nothing of another cell is offered, and the text of a cell that moves is', () => {
	const { draft, type, denied, offered, wait } = edit();
	denied();
	type('mine');
	draft.edit({ row: 3, col: 0 });
	wait(5000);
	expect(offered).toEqual([]);
	denied();
	type('in another cell');
	draft.move({ kind: 'insertRows', at: 0, n: 2 });
	wait(3000);
	expect(offered).toEqual(['5=in another cell']);
	denied();
	draft.end();
	type('left');
	wait(5000);
	expect(offered.length).toBe(1);
});
