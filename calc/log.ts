// log.ts - lines on the standard error.
export function log(line: string): void {
	process.stderr.write(`${new Date().toISOString()} pg_sheet_calc: ${line}\n`);
}
