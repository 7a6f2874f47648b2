// Texts in the sources: what a user reads comes from the files of texts, in both languages, and all of these are used. And
// selectors of the style sheets that would cost too much.
import { readdirSync, readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, it } from 'vitest';
import { chinese, english, first } from './texts';

const sources = import.meta.glob<string>('../src/**/*.ts', { query: '?raw', eager: true, import: 'default' });

/** Functions of which these arguments are shown. */
const shownArguments: Record<string, (index: number) => boolean> = {
	h: (index) => index >= 2,
	button: (index) => index === 0,
	field: (index) => index === 0,
	openDialog: () => true,
	confirmDialog: (index) => index < 3,
	openDrawer: (index) => index === 2,
	notify: (index) => index === 0,
	announce: (index) => index === 0,
};
const shownAttributes = new Set(['aria-label', 'aria-description', 'title', 'placeholder', 'alt']);
const shownProperties = new Set(['textContent', 'innerText', 'title', 'ariaLabel', 'placeholder']);
/** Names of languages, and of a key. */
const untranslated = new Set(['English', '中文', 'F6']);

/** Text that a user would see: letters in a string or a template. */
function literals(node: ts.Node): string[] {
	if (ts.isStringLiteralLike(node)) return [node.text];
	if (ts.isTemplateExpression(node)) return [node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)];
	if (ts.isConditionalExpression(node)) return [...literals(node.whenTrue), ...literals(node.whenFalse)];
	if (ts.isBinaryExpression(node))
		return node.operatorToken.kind === ts.SyntaxKind.AmpersandAmpersandToken ? literals(node.right) : [...literals(node.left), ...literals(node.right)];
	if (ts.isParenthesizedExpression(node)) return literals(node.expression);
	return [];
}

const isText = (text: string) => /\p{L}/u.test(text) && !untranslated.has(text);

/** Texts that are written in a source, the keys that it uses (patterns of those with a variable part), and what it imports. */
function examine(source: string): { texts: string[]; keys: string[]; patterns: RegExp[]; imports: string[] } {
	const found = { texts: [] as string[], keys: [] as string[], patterns: [] as RegExp[], imports: [] as string[] };
	const note = (node: ts.Node) => found.texts.push(...literals(node).filter(isText));
	const noteKey = (node: ts.Node): void => {
		if (ts.isStringLiteralLike(node)) found.keys.push(node.text);
		else if (ts.isTemplateExpression(node))
			found.patterns.push(
				new RegExp(
					`^${literals(node)
						.map((part) => part.replace(/\W/g, '\\$&'))
						.join('.+')}$`,
				),
			);
		else if (ts.isConditionalExpression(node)) [node.whenTrue, node.whenFalse].forEach(noteKey);
	};
	const visit = (node: ts.Node): void => {
		if (ts.isCallExpression(node) && ts.isIdentifier(node.expression)) {
			const name = node.expression.text;
			node.arguments.forEach((argument, i) => shownArguments[name]?.(i) && note(argument));
			if (name === 't' || name === 'tOr') node.arguments.slice(0, name === 't' ? 1 : 2).forEach(noteKey);
		}
		if (ts.isImportDeclaration(node) && !node.importClause?.isTypeOnly && ts.isStringLiteral(node.moduleSpecifier))
			found.imports.push(node.moduleSpecifier.text);
		if (ts.isPropertyAssignment(node) && (ts.isStringLiteral(node.name) || ts.isIdentifier(node.name)) && shownAttributes.has(node.name.text))
			note(node.initializer);
		if (
			ts.isBinaryExpression(node) &&
			node.operatorToken.kind === ts.SyntaxKind.EqualsToken &&
			ts.isPropertyAccessExpression(node.left) &&
			shownProperties.has(node.left.name.text)
		)
			note(node.right);
		ts.forEachChild(node, visit);
	};
	visit(ts.createSourceFile('source.ts', source, ts.ScriptTarget.ES2022, true));
	return found;
}

describe('texts in the sources', () => {
	const all = Object.entries(sources).map(([file, source]) => ({ file, ...examine(source) }));

	it('a text that is not translated is found', () => {
		const source =
			"h('p', { title: 'Help' }, 'Hello', t('close')); button(open ? 'Hide' : t('close'), run); label.textContent = `${n} cells`; h('div', { class: 'x' }, '✕', 'F6');";
		expect(examine(source)).toEqual({ texts: ['Hello', 'Help', 'Hide', ' cells'], keys: ['close', 'close'], patterns: [], imports: [] });
	});
	it('are all translated', () => {
		expect(all.filter(({ texts }) => texts.length > 0).map(({ file, texts }) => ({ file, texts }))).toEqual([]);
	});
	it('refer to texts that exist', () => {
		expect(all.flatMap(({ keys }) => keys).filter((key) => !(key in english))).toEqual([]);
		expect(all.flatMap(({ patterns }) => patterns).filter((pattern) => !Object.keys(english).some((key) => pattern.test(key)))).toEqual([]);
	});
	it('use all texts', () => {
		const keys = new Set(all.flatMap((file) => file.keys));
		const patterns = all.flatMap((file) => file.patterns);
		expect(Object.keys(english).filter((key) => !keys.has(key) && !patterns.some((pattern) => pattern.test(key)))).toEqual([]);
	});
	it('of the first pages are loaded with them', () => {
		const files = new Set(['../src/main.ts']);
		for (const file of files) {
			const directory = file.slice(0, file.lastIndexOf('/') + 1);
			for (const name of all.find((each) => each.file === file)?.imports ?? []) {
				const path = new URL(name, `file:///src/web/${directory.slice(3)}`).pathname.replace('/src/web', '..');
				for (const found of [`${path}.ts`, `${path}/index.ts`]) if (found in sources) files.add(found);
			}
		}
		expect([...files]).toContain('../src/pages/sheets.ts');
		expect([...files].flatMap((file) => all.find((each) => each.file === file)!.keys).filter((key) => !(key in first))).toEqual([]);
	});
	it('are in Chinese where they are Chinese', () => {
		const isChinese = (text: string) => /\p{Script=Han}/u.test(text);
		const same = new Set(['product', 'paste.kind.markdown', 'album.markdown', 'album.html']);
		const values = (text: string) => text.replace(/\{\w+\}/g, '');
		expect(Object.entries(chinese).filter(([key, text]) => !same.has(key) && /\p{L}/u.test(values(text)) && !isChinese(text))).toEqual([]);
		expect(Object.entries(english).filter(([, text]) => isChinese(text))).toEqual([]);
	});
});

describe('style sheets', () => {
	// The subject of such a selector may be any element, so that Chromium looks at all of them whenever a node is added.
	const costly = /:has\([^{},]*\)[^{},]*[ >~+](?:\*|:not\()[^{},]*/g;

	it('a selector of any element by what others contain is found', () => {
		expect('body:has(> .a) > :not(.b) { }\n.c:has(.d), .e > :not(.f) { }'.match(costly)).toEqual([':has(> .a) > :not(.b) ']);
	});
	it('have none', () => {
		const src = new URL('../src/', import.meta.url);
		const files = (readdirSync(src, { recursive: true }) as string[]).filter((name) => name.endsWith('.css'));
		expect(files.length).toBeGreaterThan(1);
		expect(files.flatMap((name) => readFileSync(new URL(name, src), 'utf8').match(costly) ?? [])).toEqual([]);
	});
});
