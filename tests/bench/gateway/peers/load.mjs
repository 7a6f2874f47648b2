/*
 * load.mjs - what loads in JavaScript do alike: the words between load and benchmark, and the users' turns.
 *
 *     ...-load.mjs PORT USERS WINDOW BATCH SECONDS
 *
 * A load prints "ready" when all have joined, starts at the next line of its standard input, prints "over" when
 * everything that was sent has come to everybody (or nothing has come for 15 s), then looks at what has come, prints the
 * result as one line of JSON, and ends with its input. BATCH is edits a transaction, WINDOW is how many transactions of
 * a user may be under way.
 */
import readline from 'node:readline';
import { batchMax } from './workload.mjs';

const giveUpMs = 15000;

/** The clock of a run: users ask it whether they may go on; it ends when all have got everything, or nothing comes. */
export class Run {
	constructor(seconds, users) {
		Object.assign(this, { seconds, users, transactions: 0 });
	}

	start() {
		this.startedAt = this.newsAt = performance.now();
		this.stopAt = this.startedAt + this.seconds * 1000;
		for (const user of this.users) user.fill();
		return new Promise((resolve) => {
			const timer = setInterval(() => {
				const now = performance.now();
				const whole = now >= this.stopAt && this.users.every(({ received }) => received === this.transactions);
				if (!whole && now - this.newsAt < giveUpMs) return;
				clearInterval(timer);
				resolve();
			}, 2);
		});
	}

	/** May a user begin one more? Counts it. */
	take() {
		if (performance.now() >= this.stopAt) return false;
		this.transactions++;
		return true;
	}

	/** A user has received a transaction. */
	news() {
		this.newsAt = performance.now();
	}

	get totalSeconds() {
		return (this.newsAt - this.startedAt) / 1000;
	}
}

/** users(options) joins; check(users, options) => {received, lost, reordered, problems} in edits, after the run. */
export async function serve({ join, check }) {
	const [port, count, window, batch, seconds] = process.argv.slice(2).map(Number);
	if (!(batch >= 1 && batch <= batchMax && window >= 1)) throw new Error(`WINDOW is at least 1, BATCH 1 to ${batchMax}`);
	const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
	const users = [];
	const run = new Run(seconds, users);
	const options = { port, window, batch, run };
	for (let index = 0; index < count; index++) users.push(await join(index, options));
	process.stdout.write('ready\n');
	if ((await lines.next()).done) process.exit(1);
	await run.start();
	process.stdout.write('over\n');
	const result = await check(users, options);
	process.stdout.write(
		`${JSON.stringify({ users: count, sent: run.transactions * batch, total_seconds: run.totalSeconds, ...result })}\n`,
	);
	while (!(await lines.next()).done);
	process.exit(0);
}
