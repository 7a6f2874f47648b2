// How the page is built: hashed assets under /assets, nothing from the network, and of Univer's dependencies only what the
// page uses.
import type { Plugin } from 'vite';
import { defineConfig } from 'vitest/config';
import * as cjk from 'cjk-regex';
import path from 'node:path';
import { changedUniver } from './tools/univer';

const patternsOf = Object.entries(cjk).map(([name, of]) => `export const ${name} = () => ({ toRegExp: () => ${of().toRegExp()} });`);

/** Modules that replace dependencies of Univer, by their names. */
const replacements: Record<string, string> = {
	// Parses the fonts of a system, of which the page reads none.
	'opentype.js': `export const parse = () => { throw new Error('fonts are not parsed'); };`,
	// Finds the language of a text, for hyphenation. Cells do not hyphenate.
	'franc-min': `export const franc = () => 'und';`,
	// Computes its patterns from 660 kB of tables.
	'cjk-regex': patternsOf.join('\n'),
};

/** What Univer imports, or does, and the page does not need. */
const withoutUnused = {
	name: 'without-unused',
	enforce: 'pre' as const,
	resolveId(source: string, importer = '') {
		const from = importer.split(path.sep).join('/');
		if (source in replacements && from.includes('/@univerjs/')) return `\0${source}`;
		// The render engine has a chunk for each language's hyphenation (4.5 MB).
		if (from.endsWith('@univerjs/engine-render/lib/es/index.js') && /^\.\/[\w-]+\.js$/.test(source)) return '\0nothing';
		// The texts of functions are read when they are needed (view/texts.ts).
		if (from.includes('/preset-sheets-core/') && source.startsWith('@univerjs/sheets-formula/locale/')) return '\0nothing';
		return null;
	},
	transform: changedUniver,
	load: (id: string) => (id === '\0nothing' ? 'export default {};' : (replacements[id.slice(1)] ?? null)),
};

/**
 * Makes the editor a classic script, which a small module loads. Chromium stores the compiled code of modules and of
 * scripts, but uses only that of scripts. The editor has 4.5 MB, and parsing them delays the first painting.
 */
const editorAsScript: Plugin = {
	name: 'editor-as-script',
	generateBundle: {
		order: 'post', // after Vite has filled in what import() preloads
		handler(_, bundle) {
			const editor = Object.values(bundle).find((file) => file.type === 'chunk' && file.name === 'editor');
			if (editor?.type !== 'chunk' || editor.code.includes('__VITE_')) throw new Error('the page has no finished editor');
			const { code } = editor;
			const exported: [name: string, local: string][] = [];
			let body = '';
			let end = 0;
			for (const node of this.parse(code).body) {
				const statement = node as typeof node & { start: number; end: number };
				if (!/^(Import|Export)/.test(node.type)) continue;
				body += code.slice(end, statement.start);
				end = statement.end;
				if (node.type === 'ImportDeclaration' && node.specifiers.every((of) => of.type === 'ImportSpecifier')) {
					const names = node.specifiers.map(({ imported, local }) => `${(imported as typeof local).name}:${local.name}`);
					body += `const{${names.join()}}=await import(${JSON.stringify(node.source.value)});`;
				} else if (node.type === 'ExportNamedDeclaration' && !node.declaration && !node.source) {
					for (const { exported: name, local } of node.specifiers) exported.push([(name as { name: string }).name, (local as { name: string }).name]);
				} else throw new Error(`the editor has a statement that only a module can have: ${code.slice(statement.start, statement.end)}`);
			}
			body += code.slice(end);
			const fileName = editor.fileName.replace(/js$/, 'script.js');
			const names = exported.map(([name, local]) => `${name}:${local}`).join();
			this.emitFile({ type: 'asset', fileName, source: `globalThis.pgSheetEditor=(async()=>{"use strict";${body}\nreturn{${names}}})();` });
			editor.code =
				`await new Promise((done,failed)=>{const script=document.createElement("script");` +
				`Object.assign(script,{src:${JSON.stringify(`/${fileName}`)},onload:done,onerror:failed});document.head.append(script)});` +
				`const editor=await pgSheetEditor;export const ${exported.map(([name]) => `${name}=editor.${name}`).join()};`;
		},
	},
};

/**
 * Built in two runs, the page of sheets and (mode `pastes`) that of pastes, with the script of published views. In one
 * run, what both use would be chunks of their own, and the list of sheets would load more of them.
 */
export default defineConfig(({ mode }) => ({
	plugins: mode === 'pastes' ? [] : [withoutUnused, editorAsScript],
	worker: { format: 'es', plugins: () => [withoutUnused] },
	define: { 'process.env.NODE_ENV': JSON.stringify('production') },
	build: {
		target: 'es2022',
		chunkSizeWarningLimit: 8000,
		sourcemap: false,
		modulePreload: { polyfill: false },
		emptyOutDir: mode !== 'pastes',
		copyPublicDir: mode !== 'pastes',
		rollupOptions: {
			input: mode === 'pastes' ? ['paste.html', 'src/published.ts'] : 'index.html',
			// The gateway writes the page of published views, and names its script.
			output: { entryFileNames: ({ name }: { name: string }) => (name === 'published' ? '[name].js' : 'assets/[name]-[hash].js') },
		},
	},
	server: { host: '127.0.0.1', strictPort: true },
	test: {
		testTimeout: 60000, // on a busy machine
		// What calc imports is not above its files.
		alias: Object.fromEntries(['saxes', 'yauzl', 'yazl'].map((name) => [name, path.resolve(`node_modules/${name}`)])),
	},
}));
