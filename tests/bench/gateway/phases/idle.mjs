/* idle - IDLE=10000 WebSockets that do nothing, in 100 sheets: the memory of a fresh gateway for each. After a flood it
 * would use what that has left. */
import { memoryKilobytes, setting } from '../../common/site.mjs';
import { crowd, newSheets, restartGateway } from './common.mjs';

export async function idle(bench) {
	const count = setting('IDLE', 10000, 100, 11000);
	await restartGateway(bench);
	const fids = await newSheets(bench, 100);
	const members = [];
	for (let i = 0; i < count; i++)
		members.push([fids[Math.floor((i * fids.length) / count)], bench.users[i % bench.users.length].token]);
	const before = memoryKilobytes(bench.site.gatewayPid);
	let after;
	await crowd(bench, members, { rate: 0, seconds: 2, writers: 1 }, async () => {
		after = memoryKilobytes(bench.site.gatewayPid);
	});
	const each = Math.round(((after - before) * 1024) / count);
	bench.line(`${count} idle WebSockets: bytes of the gateway for each`, each, '10,000', each <= 10000);
	return { idle_conn_bytes: each };
}
