// Writes .gz and .br beside every text file of dist/, so that the gateway can answer without compressing.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';

const dist = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), '../dist');
const isText = /\.(html|js|css|json|svg|txt|webmanifest)$/;

function* files(directory) {
	for (const entry of fs.readdirSync(directory, { withFileTypes: true })) {
		const full = path.join(directory, entry.name);
		if (entry.isDirectory()) yield* files(full);
		else yield full;
	}
}

let plain = 0;
let small = 0;
for (const file of files(dist)) {
	if (!isText.test(file)) continue;
	const bytes = fs.readFileSync(file);
	const brotli = zlib.brotliCompressSync(bytes, {
		params: { [zlib.constants.BROTLI_PARAM_LGWIN]: zlib.constants.BROTLI_MAX_WINDOW_BITS, [zlib.constants.BROTLI_PARAM_SIZE_HINT]: bytes.length },
	});
	fs.writeFileSync(`${file}.br`, brotli);
	fs.writeFileSync(`${file}.gz`, zlib.gzipSync(bytes, { level: 9 }));
	plain += bytes.length;
	small += brotli.length;
}
console.log(`compressed ${(plain / 1e6).toFixed(1)} MB to ${(small / 1e6).toFixed(1)} MB (br)`);
