// beat.ts - memory that a thread shares with the main thread: a counter that says that it is alive, and the formula that it
// computes. It can be read while a formula is computed that never ends, and after a thread has run out of memory.

const longest = 32_767 * 3;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

export class Beat {
	private readonly numbers: Int32Array;
	private readonly text: Uint8Array;

	constructor(readonly memory = new SharedArrayBuffer(8 + longest)) {
		this.numbers = new Int32Array(memory, 0, 2);
		this.text = new Uint8Array(memory, 8);
	}

	/** Tells that the thread is alive, and what it does next. */
	tell(formula: string): void {
		this.numbers[1] = encoder.encodeInto(formula, this.text).written;
		Atomics.add(this.numbers, 0, 1);
	}

	/** It changes as long as the thread is alive. */
	get count(): number {
		return Atomics.load(this.numbers, 0);
	}

	/** The formula that is being computed; '': none is. */
	get formula(): string {
		return decoder.decode(this.text.slice(0, Atomics.load(this.numbers, 1)));
	}
}
