// import.ts - the dialog of a file that becomes a sheet, a tab or cells: its first rows, how it is read, and the upload. Loaded at its first use.
import { CsvError, previewImport, sheetNameOf, sheetOf, uploadCsv, type ImportOptions, type ImportRequest, type Preview } from '../csv';
import { parseContent } from '../content';
import { button, explain, h, notify, openDialog } from '../dom';
import { t } from '../i18n';
import { localeOf } from '../paste/locale';
import type { Session } from '../api';

const encodings =
	'UTF-8 UTF-16LE UTF-16BE windows-1252 windows-1250 windows-1251 ISO-8859-1 ISO-8859-2 ISO-8859-15 GB18030 Big5 Shift_JIS EUC-JP EUC-KR TIS-620 KOI8-R'.split(
		' ',
	);
const separators = [',', ';', 'tab', '|'];
const shownColumns = 20;

let choices = 0;
/** A choice of values with its label. */
function choice(label: string, values: string[], name: (value: string) => string): { row: HTMLElement; select: HTMLSelectElement } {
	const id = `import-${++choices}`;
	const select = h('select', { id }, ...values.map((value) => h('option', { value }, name(value))));
	return { row: h('div', { class: 'field' }, h('label', { for: id }, label), select), select };
}

function check(label: string): { row: HTMLElement; input: HTMLInputElement } {
	const input = h('input', { type: 'checkbox' });
	return { row: h('label', { class: 'check' }, input, ' ', label), input };
}

/** A content as a grid shows it: texts without their apostrophe, all else in a class of its own. */
function cellOf(content: string): HTMLElement {
	const value = parseContent(content);
	return value.kind === 'text' ? h('td', { dir: 'auto' }, value.text) : h('td', { class: value.kind === 'formula' ? 'formula' : 'value' }, content);
}

/** What a file becomes. */
export interface ImportTarget {
	/** name: a name for a sheet, made of that of the file. Absent: the file becomes a sheet. */
	request?(name: string): ImportRequest;
	/** What is said of it in the dialog. */
	note?: string;
	/** It is there. id: of a new sheet. */
	done(id: number | undefined): void;
}

/** Shows what a file would become, and uploads it when the user says so. */
export function importFile(session: Session, file: File, target: ImportTarget): void {
	const json = /\.jsonl$/i.test(file.name);
	const encoding = choice(t('csv.encoding'), encodings, (value) => value);
	const separator = choice(t('csv.separator'), separators, (value) => t(`csv.separator.${separators.indexOf(value)}`));
	const lenient = check(t('csv.lenient'));
	const decimal = check(t('csv.decimal'));
	const dates = choice(t('csv.dates'), ['', 'dmy', 'mdy'], (value) => t(`csv.dates.${value || 'text'}`));
	const formulas = check(t('csv.formulas'));
	const settings = h(
		'div',
		{ class: 'import-settings' },
		encoding.row,
		!json && separator.row,
		!json && dates.row,
		!json && lenient.row,
		!json && decimal.row,
		formulas.row,
	);
	const rows = h('table');
	const shown = h('div', { class: 'import-rows', role: 'region', 'aria-label': t('csv.preview'), tabindex: 0, dir: 'auto' }, rows);
	const share = h('progress', { max: 1, value: 0, 'aria-label': t('csv.progress'), hidden: true });
	const text = h('p', { role: 'status' });
	const problem = h('p', { class: 'problem', role: 'alert' });
	const cancel = button(t('cancel'), () => close());
	const begin = button(t('csv.start'), () => send(), { class: 'primary', disabled: true });
	const { dialog, close } = openDialog(
		t('csv.import'),
		h('p', { dir: 'auto' }, file.name),
		target.note ? h('p', {}, target.note) : null,
		settings,
		shown,
		text,
		share,
		problem,
		h('footer', {}, cancel, begin),
	);
	dialog.classList.add('wide');

	// Before the user has chosen anything, the gateway recognises all of it.
	const options = (chosen: boolean): ImportOptions =>
		json
			? { format: 'jsonl', encoding: chosen ? encoding.select.value : '', formulas: formulas.input.checked }
			: chosen
				? {
						encoding: encoding.select.value,
						separator: separator.select.value,
						lenient: lenient.input.checked,
						decimal: decimal.input.checked ? ',' : '.',
						dates: dates.select.value,
						formulas: formulas.input.checked,
					}
				: {};
	let asked = 0;
	/** Shows the first rows again. At first, what is recognised is chosen. */
	const preview = async (chosen: boolean) => {
		const question = ++asked;
		begin.disabled = true;
		try {
			const found = await previewImport(session, file, options(chosen));
			if (question !== asked) return;
			if (!chosen && take(found)) return await preview(true);
			problem.textContent = found.malformed && !lenient.input.checked ? t('csv.error.csv_malformed', place(found.malformed)) : '';
			rows.replaceChildren(...found.rows.map((row) => h('tr', {}, ...row.slice(0, shownColumns).map(cellOf))));
			if (found.incomplete) rows.replaceChildren(h('tr', {}, h('td', {}, t('csv.incomplete'))));
			begin.disabled = problem.textContent !== '';
		} catch (error) {
			if (question !== asked) return;
			rows.replaceChildren();
			problem.textContent = error instanceof CsvError ? error.message : explain(error);
		}
	};
	const place = ({ line, column }: { line: number; column: number }) => ({ line: String(line), column: String(column) });
	/**
	 * Chooses what was recognised. Semicolons are separators where numbers have a decimal comma. Dates that have two orders have that of
	 * the language. True: this changes the rows.
	 */
	const take = (found: Preview): boolean => {
		for (const [select, value] of [
			[encoding.select, found.encoding],
			[separator.select, found.separator === '\t' ? 'tab' : found.separator],
		] as const) {
			if (value !== null && ![...select.options].some((option) => option.value === value)) select.append(h('option', { value }, value));
			select.value = value ?? '';
		}
		const { comma, order } = localeOf(navigator.language);
		decimal.input.checked = found.separator === ';' && comma;
		dates.select.value = found.dates.length > 1 ? (found.dates.includes(order) ? order : '') : (found.dates[0] ?? '');
		return decimal.input.checked || dates.select.value !== '';
	};
	for (const input of [encoding.select, separator.select, dates.select, lenient.input, decimal.input, formulas.input])
		input.addEventListener('change', () => void preview(true));
	void preview(false);

	const send = () => {
		let open = true;
		settings.inert = true;
		begin.hidden = true;
		share.hidden = false;
		text.textContent = t('csv.sending', { name: file.name });
		const upload = uploadCsv(session, (target.request ?? sheetOf)(sheetNameOf(file)), file, options(true), (sent) => {
			share.value = sent;
			if (sent < 1) return;
			// The upload is complete. The import can no longer be cancelled.
			share.removeAttribute('value');
			text.textContent = t('csv.making');
			cancel.hidden = true;
		});
		dialog.addEventListener(
			'close',
			() => {
				open = false;
				if (!cancel.hidden) upload.cancel();
			},
			{ once: true },
		);
		upload.done.then(
			({ id, forgiven, forgivenLine }) => {
				cancel.hidden = true;
				if (forgiven > 0) notify(t('csv.forgiven', { count: String(forgiven), line: String(forgivenLine) }));
				if (!open) return;
				close();
				target.done(id);
			},
			(error: unknown) => {
				const reason = error instanceof CsvError ? error.message : explain(error);
				if (!open) return cancel.hidden ? notify(reason) : undefined;
				// Something else can be chosen.
				share.hidden = true;
				text.textContent = '';
				settings.inert = begin.hidden = cancel.hidden = false;
				problem.textContent = reason;
			},
		);
	};
}
