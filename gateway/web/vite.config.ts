// How the page is built: hashed assets under /assets, nothing from the network, no hyphenation dictionaries.
import { defineConfig } from 'vite';
import path from 'node:path';

// Univer's render engine has one lazy chunk for each language's hyphenation (4.5 MB); cells do not hyphenate.
const noHyphenation = {
	name: 'no-hyphenation',
	enforce: 'pre' as const,
	resolveId(source: string, importer: string | undefined) {
		const ofEngine = importer?.split(path.sep).join('/').endsWith('@univerjs/engine-render/lib/es/index.js');
		return ofEngine && /^\.\/[\w-]+\.js$/.test(source) ? '\0no-hyphenation' : null;
	},
	load: (id: string) => (id === '\0no-hyphenation' ? 'export default {};' : null),
};

export default defineConfig({
	plugins: [noHyphenation],
	define: { 'process.env.NODE_ENV': JSON.stringify('production') },
	build: {
		target: 'es2022',
		chunkSizeWarningLimit: 8000,
		sourcemap: false,
		modulePreload: { polyfill: false },
	},
	server: { host: '127.0.0.1', strictPort: true },
});
