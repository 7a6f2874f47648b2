// identity.ts - the random number of a client, which stays the same as long as its queue.

export const newClient = (): number => {
	const [high, low] = crypto.getRandomValues(new Uint32Array(2)) as unknown as [number, number];
	return (high >>> 11) * 2 ** 32 + low + 1;
};
