// flow.ts - messages from one process to another that answers each ('took') when it has done what it says: few wait there.

const mostSent = 3;

export class Flow<Message> {
	private sent = 0;
	private failure: Error | null = null;
	private waiting: (() => void)[] = [];

	constructor(private readonly write: (message: Message) => void) {}

	/** Resolves when another message can be sent. */
	async send(message: Message): Promise<void> {
		if (!this.failure) this.write(message);
		this.sent++;
		while (this.sent >= mostSent && !this.failure) await new Promise<void>((resolve) => this.waiting.push(resolve));
		if (this.failure) throw this.failure;
	}

	took(): void {
		this.sent--;
		this.wake();
	}

	/** Nobody takes messages any more. */
	close(failure: Error): void {
		this.failure ??= failure;
		this.wake();
	}

	private wake(): void {
		for (const resolve of this.waiting.splice(0)) resolve();
	}
}
