/* check.mjs - after a run of the generator: are the log and the cells what it says they must be? */
import fs from 'node:fs';

/** The log and the cells against what the generator says they must be; the differences. */
export async function compareWithModel(psql, fid, result, cellsFile) {
	const problems = [];
	const logged = Number(await psql(`SELECT count(*) FROM sheet.log WHERE sheet_id = ${fid} AND kind = 'set'`));
	if (logged !== result.changed) problems.push(`sheet.log has ${logged} edits, ${result.changed} changed a cell`);
	const wanted = fs.readFileSync(cellsFile, 'utf8').trim().split('\n').filter(Boolean).sort();
	const cells = await psql(
		`SELECT "row", col, CASE WHEN content = repeat('test', length(content) / 4) THEN (length(content) / 4)::text ELSE content END FROM sheet.range(${fid}) WHERE content <> ''`,
	);
	const got = cells.replace(/\|/g, ' ').split('\n').filter(Boolean).sort();
	if (JSON.stringify(got) !== JSON.stringify(wanted))
		problems.push(`the cells differ: ${got.length} are filled, ${wanted.length} must be`);
	return { logged, cells: got.length, problems };
}
