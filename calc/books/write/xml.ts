// xml.ts - the text of XML in parts of a workbook.

/** Characters that XML does not have, and texts that would be read as one of them. */
const escapeCharacters = (text: string): string =>
	// eslint-disable-next-line no-control-regex
	text
		.replace(/_(?=x[0-9A-Fa-f]{4}_)/g, '_x005F_')
		.replace(/[\0-\x08\x0b-\x1f\ufffe\uffff]/g, (one) => `_x${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}_`);

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** Of an attribute or a formula. Programs would read the ends of lines in attributes as spaces. */
export const escapeXml = (text: string): string =>
	text.replace(/[&<>"\t\n\r]/g, (one) => entities[one] ?? `&#${one.charCodeAt(0)};`).replace(/[\0-\x08\x0b-\x1f\ufffe\uffff]/g, '\ufffd');

/** Of a cell. */
export const escapeText = (text: string): string => escapeCharacters(text).replace(/[&<>]/g, (one) => entities[one]!);

/** Of an attribute that has the text of a cell. */
export const escapeName = (text: string): string =>
	escapeXml(escapeCharacters(text).replace(/[\t\n]/g, (one) => `_x000${one.charCodeAt(0).toString(16).toUpperCase()}_`));

export const attributes = (values: Record<string, string | number | undefined>): string =>
	Object.entries(values)
		.map(([name, value]) => (value === undefined ? '' : ` ${name}="${typeof value === 'string' ? escapeXml(value) : value}"`))
		.join('');

export const head = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n';
export const namespaces = {
	main: 'http://schemas.openxmlformats.org/spreadsheetml/2006/main',
	relations: 'http://schemas.openxmlformats.org/officeDocument/2006/relationships',
	packageRelations: 'http://schemas.openxmlformats.org/package/2006/relationships',
	types: 'http://schemas.openxmlformats.org/package/2006/content-types',
};
