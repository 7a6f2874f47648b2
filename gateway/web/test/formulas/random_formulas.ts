// random_formulas.ts - formulas of all functions, with random arguments, and the cells that they read, for tests.
import { ALL_IMPLEMENTED_FUNCTIONS } from '@univerjs/engine-formula';
import { randomOf } from '../person';

/** Contents from A1 on. */
export const data = [
	['1', '2.5', 'text', '2024-01-31', '', '1', '2'],
	['-3', '1234.5', "'12", '10:30', '', '2', '3'],
	['TRUE', '', 'other text', '#N/A', '', '3', '5'],
	['4', '0.1', 'FALSE', '2023-12-24 18:00:00', '', '4', '8.5'],
];
const literals = ['0', '1', '2', '3', '4', '5', '7', '-1', '0.5', '0.25', '10', '"text"', '"12"', '"2024-02-29"', 'TRUE', '{1,2;3,4}', '">1"', '""'];
const references = [
	'A1',
	'B1',
	'A4',
	'B4',
	'F1',
	'F2',
	'F1:F4',
	'F1:G4',
	'C1',
	'D1',
	'A2',
	'A3',
	'B3',
	'D3',
	'A1:A4',
	'A1:B2',
	'B1:B4',
	'C1:D4',
	'A1:D4',
	'Z9',
];
const operators = ['+', '-', '*', '/', '^', '&', '=', '<', '>=', '<>'];

/** Each function three times, and then random ones: `count` formulas. NOW() is another time in each computation, and CUBE() Univer's own name for several areas. */
export function randomFormulas(seed: number, count: number): string[] {
	const below = randomOf(seed);
	const pick = <T>(list: T[]): T => list[below(list.length)]!;
	const known = new Map(ALL_IMPLEMENTED_FUNCTIONS.map(([Implemented, name]) => [String(name), new Implemented(name)]));
	const names = [...known.keys()].filter((name) => !['NOW', 'CUBE'].includes(name));
	// Mostly as many arguments as the function takes.
	const countOf = (name: string): number => {
		const { minParams, maxParams } = known.get(name)!;
		return below(20) === 0 || minParams < 0 ? below(5) : minParams + below(Math.min(maxParams - minParams, 2) + 1);
	};
	const callOf = (name: string, depth: number): string => `${name}(${Array.from({ length: countOf(name) }, () => termOf(depth)).join(',')})`;
	const termOf = (depth: number): string => {
		const kind = below(10);
		if (depth === 0 || kind < 3) return below(2) ? pick(literals) : pick(references);
		if (kind < 5) return `(${termOf(depth - 1)}${pick(operators)}${termOf(depth - 1)})`;
		return callOf(pick(names), depth - 1);
	};
	const formulas = names.flatMap((name) => [callOf(name, 0), callOf(name, 0), callOf(name, 1)]);
	while (formulas.length < count) formulas.push(callOf(pick(names), 2));
	return formulas.slice(0, count).map((formula) => `=${formula}`);
}
