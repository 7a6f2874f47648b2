// absent.ts - references to tabs that cannot be read, or do not exist, are #REF!. Univer would give functions an array with one error,
// which COUNTIF() counts as nothing, and XLOOKUP() does not find.
import { ErrorValueObject, FUNCTION_NAMES_INFORMATION, FUNCTION_NAMES_LOGICAL } from '@univerjs/engine-formula';
import { tabOfId } from './arrays';

interface Value {
	isReferenceObject(): boolean;
}

interface Reference extends Value {
	getSheetId(): string;
	_checkIfWorksheetMiss(): boolean;
}

/** A part of a parsed formula, as Univer has it. */
export interface AstNode {
	readonly nodeType: number;
	isAbsent?: boolean;
	execute(): void;
	getToken(): string;
	getValue(): Value | undefined;
	setValue(value: unknown): void;
	getChildren(): AstNode[];
}

const referenceNode = 1; // Univer's number of it
const functionNode = 4;
const unionNode = 10; // of the corners of a range
/** Functions that take errors. */
const lenient = new Set([...Object.values(FUNCTION_NAMES_LOGICAL), ...Object.values(FUNCTION_NAMES_INFORMATION), 'CHOOSE', 'COUNT', 'COUNTA'] as string[]);
const patched = new WeakSet<object>();

/** `isHere`: whether there are cells of the tab to read. */
export function refuseAbsent(node: AstNode, isHere: (tab: number) => boolean): void {
	const prototype = Object.getPrototypeOf(node) as AstNode;
	if ([referenceNode, functionNode, unionNode].includes(node.nodeType) && !patched.has(prototype)) {
		patched.add(prototype);
		const { execute } = prototype;
		prototype.execute = function (this: AstNode) {
			execute.call(this);
			const value = this.getValue();
			const hasAbsent = this.getChildren().some((child) => child.isAbsent);
			this.isAbsent = (value?.isReferenceObject() === true && isAbsent(value as Reference, isHere)) || (this.nodeType === unionNode && hasAbsent);
			const takesErrors = this.nodeType === functionNode && lenient.has(this.getToken().toUpperCase());
			if (this.isAbsent || (hasAbsent && !takesErrors)) this.setValue(ErrorValueObject.create('#REF!' as never));
		};
	}
	node.getChildren().forEach((child) => refuseAbsent(child, isHere));
}

function isAbsent(reference: Reference, isHere: (tab: number) => boolean): boolean {
	const tab = tabOfId(reference.getSheetId());
	return reference._checkIfWorksheetMiss() || (tab > 0 && !isHere(tab));
}
