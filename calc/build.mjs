// Builds the programs of calc into a directory (build/calc): main.mjs, worker.mjs of its threads, and child.mjs of its processes, without anything
// else that they need at run time. Uses the packages of gateway/web.
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const web = path.resolve(here, '../gateway/web');
const { build } = createRequire(path.join(web, 'package.json'))('esbuild');

/** What Univer imports and formulas do not use: fonts, and the language of a text. */
const unused = ['opentype.js', 'franc-min', 'cjk-regex'];

await build({
	entryPoints: [path.join(here, 'main.ts'), path.join(here, 'worker.ts'), path.join(here, 'books/child.ts')],
	outdir: path.resolve(process.argv[2] ?? path.join(here, '../build/calc')),
	entryNames: '[name]',
	outExtension: { '.js': '.mjs' },
	bundle: true,
	platform: 'node',
	target: 'node18',
	format: 'esm',
	minify: true,
	keepNames: false,
	legalComments: 'none',
	nodePaths: [path.join(web, 'node_modules')],
	external: ['pg-native'],
	define: { 'process.env.NODE_ENV': '"production"' },
	// Packages that are no modules call require().
	banner: {
		js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
	},
	plugins: [
		{
			name: 'unused',
			setup(of) {
				of.onResolve({ filter: new RegExp(`^(${unused.join('|')})$`) }, ({ path: name }) => ({ path: name, namespace: 'unused' }));
				of.onLoad({ filter: /.*/, namespace: 'unused' }, () => ({
					contents: 'module.exports = {};',
					loader: 'js',
				}));
			},
		},
	],
});
