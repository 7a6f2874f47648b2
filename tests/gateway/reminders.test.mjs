/* Reminders of calendars: pages of the account, and nobody else, hear of them; mail by a program that fails, hangs, or loses its gateway. */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, waitUntil } from '../lib/cluster.mjs';
import { newSheet, post, register, request } from '../lib/client.mjs';
import { RawClient } from '../lib/v2.mjs';

let cluster;
let gateway;
let anna;
let ben;
let calendar;
let mails;

before(async () => {
	cluster = await Cluster.start({ gateways: 0, coordinator: 'zookeeper' });
	mails = path.join(cluster.directory, 'mails');
	fs.mkdirSync(mails);
	fs.chmodSync(mails, 0o777);
	const program = path.join(cluster.directory, 'sendmail');
	fs.writeFileSync(program, sendmail);
	fs.chmodSync(program, 0o755);
	const flags = { 'reminder-mail': `${program} ${mails} -t  -i`, 'reminder-mail-from': 'Calendar <calendar@example.org>', 'default-link-role': 'none' };
	for (let i = 0; i < 2; i++) await cluster.addGateway(flags);
	[gateway] = cluster.gateways;
	[anna, ben] = [await person('anna'), await person('ben')];
	calendar = (await send(anna, 'POST', '/v2/calendars', { name: 'Team', zone: 'Europe/Berlin' })).json.id;
});
after(() => cluster?.stop());

/** Stores its input, and what it has inherited. By the address: fails twice, or hangs while `hold` exists. */
const sendmail = `#!/bin/bash
mail=$(cat; echo x)
name=$(sed -n 's/^To: \\([a-z]*\\).*/\\1/p' <<<"$mail" | head -1)
touch "$1/$name.try.$$"
case $name in
fails) [ "$(ls "$1" | grep -c '^fails\\.try')" -gt 2 ] || exit 75 ;;
hangs) while [ -e "$1/hold" ]; do sleep 0.1; done ;;
esac
ls -l /proc/$$/fd >"$1/$name.files"
env >"$1/$name.env"; echo "$2 $3 $#" >"$1/$name.words"
printf %s "\${mail%x}" >"$1/$name.sent.$$"
`;

async function send(user, method, route, body, at = gateway) {
	const text = body === undefined ? undefined : JSON.stringify(body);
	return request(at, method, route, { headers: { authorization: `Bearer ${user.token}`, ...(text && { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }) }, body: text });
}
/** An account that only the test's own mail goes to, with a role in the calendar if there is one. */
async function person(name, address = '') {
	const user = await register(gateway, `${name}${Math.random().toString(36).slice(2, 8)}`);
	await cluster.psql(`UPDATE sheet.account SET email = '${address}' WHERE uid = ${user.uid}`);
	if (calendar) await cluster.psql(`SELECT sheet.share(${calendar}, '${user.username}', 'viewer')`);
	return user;
}
const quoted = (text) => `'${text.replaceAll("'", "''")}'`;
/** A task of the calendar that is due: it begins in a minute, and has a reminder of two minutes. */
async function due(title, who, place = '') {
	const start = new Date(Date.now() + 60000).toISOString().slice(0, 19).replace('T', ' ');
	const cells = { Title: title, Start: start, End: '30 min', 'Time zone': 'UTC', Place: place, Who: who.username, Reminder: '2 min' };
	await cluster.psql(`SELECT sheet.add_task(${calendar}, ${quoted(JSON.stringify(cells))}, as_uid => ${anna.uid})`);
	return start;
}
const listed = async (user, at = gateway) => (await send(user, 'GET', '/v2/reminders', undefined, at)).json.reminders;
const found = (name, what) => fs.readdirSync(mails).filter((file) => file.startsWith(`${name}.${what}`));
const untilSent = async (name) => {
	await waitUntil(() => found(name, 'sent').length > 0, `a mail to ${name}`, 90000);
	await waitUntil(async () => (await cluster.psql(`SELECT count(*) FROM sheet.outbox o JOIN sheet.account a USING (uid) WHERE a.email LIKE '${name}@%'`)) === '0', 'the end to be stored');
	const [file] = found(name, 'sent');
	return fs.readFileSync(path.join(mails, file), 'utf8');
};

describe('reminders in pages', () => {
	test('sessions of the account hear of one, and of its dismissal; others, guests and earlier versions do not', async () => {
		const fid = await newSheet(gateway, anna);
		await cluster.psql(`SELECT sheet.share(${fid}, '${ben.username}', 'viewer')`);
		const link = await post(gateway, `/v2/sheets/${fid}/links`, { token: anna.token, role: 'viewer' });
		const guest = (await post(gateway, '/v2/link', { link: link.json.key, name: 'Zoe' })).json;
		const at = (await send(anna, 'GET', `/v2/sheets/${fid}/route`)).json.http;
		const owner = cluster.gateways.find(({ url }) => url === at);
		const open = (user, options) => RawClient.open(owner, user, fid, { v: 4, ...options });
		const own = [await open(anna), await open(anna, { encoding: 'binary' })];
		const others = [await open(ben), await open(guest), await open(anna, { v: 3 }), await open(anna, { v: 2 })];
		assert.equal(own[0].hello.v, 4);
		assert.deepEqual(await listed(anna), []);
		const start = await due('Stand-up', anna, 'Room 1');
		for (const session of own) assert.deepEqual(await session.next('reminders'), { t: 'reminders' });
		const [reminder] = await listed(anna);
		const { id, uid, ...rest } = reminder;
		const time = (ms) => new Date(Date.parse(`${start.replace(' ', 'T')}Z`) + ms).toISOString().replace('.000', '');
		assert.deepEqual(rest, { calendar, start: time(0), end: time(1800000), allDay: false, title: 'Stand-up', place: 'Room 1' });
		assert.ok(id > 0 && uid.length > 0);
		assert.deepEqual(await listed(ben), []);
		for (const list of ['1,', ',1', '1,,2', ',', '', '99999999999999999999', 'x']) {
			const refused = await send(anna, 'DELETE', `/v2/reminders?ids=${list}`);
			assert.equal(refused.status, 400, list);
			assert.match(JSON.stringify(refused), /ids is needed: a list/);
		}
		assert.equal((await send(ben, 'DELETE', `/v2/reminders?ids=${id}`)).status, 204);
		assert.deepEqual(await listed(anna), [reminder], "another account dismisses nothing of anna's");
		assert.equal((await send(anna, 'DELETE', `/v2/reminders?ids=${id},${id + 1}`, undefined, cluster.gateways.find((other) => other !== owner))).status, 204);
		for (const session of own) await session.next('reminders');
		assert.deepEqual(await listed(anna), []);
		// What comes after it has come, so it would have come before.
		await cluster.psql(`SELECT sheet.set(${fid}, 'A1', 'after')`);
		for (const session of [...own, ...others]) await session.next('edits');
		for (const session of others) assert.equal(session.messages.filter(({ t }) => t === 'reminders').length, 0);
		for (const session of own) assert.equal(session.messages.filter(({ t }) => t === 'reminders').length, 2, 'twice: when it was due, and when it was dismissed');
		for (const session of [...own, ...others]) session.terminate();
		assert.equal((await send(guest, 'GET', '/v2/reminders')).status, 403);
		for (const query of ['', '?ids=', '?ids=a', '?ids=1,', '?ids=99999999999999999999']) assert.equal((await send(anna, 'DELETE', `/v2/reminders${query}`)).status, 400, query);
	});

	test('an access token reads them with the scope read, and dismisses them with edit', async () => {
		const [reader, writer] = await Promise.all(['read', 'edit'].map(async (scope) => ({ token: (await send(anna, 'POST', '/v2/tokens', { label: scope, scopes: [scope] })).json.token })));
		assert.equal((await send(reader, 'GET', '/v2/reminders')).status, 200);
		assert.equal((await send(reader, 'DELETE', '/v2/reminders?ids=1')).status, 403);
		assert.equal((await send(writer, 'DELETE', '/v2/reminders?ids=1')).status, 204);
	});

	test('the newest hundred are listed', async () => {
		const user = await person('many');
		await cluster.psql(`INSERT INTO sheet.notice SELECT nextval('sheet.outbox_id_seq'), ${user.uid}, ${calendar}, 'u' || i, now(), now(), false, 'UTC', 't' || i, '', now() FROM generate_series(1, 120) i`);
		const all = await listed(user);
		assert.deepEqual([all.length, all[0].title, all[99].title], [100, 't120', 't21']);
		assert.equal((await send(user, 'DELETE', `/v2/reminders?ids=${all.map(({ id }) => id).join()}`)).status, 204);
		assert.equal((await listed(user)).length, 20);
	});
});

describe('reminders by mail', () => {
	test('a mail has the event, whatever is in its title; the program inherits nothing', async () => {
		const user = await person('plain', 'plain@example.org');
		const title = 'Zürich\r\nBcc: eve@example.org\n\n, 会议 with a long title =?UTF-8?Q?x?=';
		await due(title, user, 'Raum 1\nBcc: eve@example.org');
		const [head, body, ...none] = (await untilSent('plain')).split('\n\n');
		assert.equal(none.length, 0);
		assert.ok(head.split('\n').every((line) => line.length <= 76 && /^[ -~]+$/.test(line)), head);
		const fields = Object.fromEntries(head.replaceAll('\n ', ' ').split('\n').map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 2)]));
		assert.deepEqual(Object.keys(fields), ['From', 'To', 'Subject', 'Date', 'Message-ID', 'Auto-Submitted', 'MIME-Version', 'Content-Type', 'Content-Transfer-Encoding']);
		assert.deepEqual([fields.From, fields.To], ['Calendar <calendar@example.org>', 'plain@example.org']);
		const words = fields.Subject.split(' ').map((word) => Buffer.from(/^=\?UTF-8\?B\?(.*)\?=$/.exec(word)[1], 'base64').toString());
		assert.equal(words.join(''), title.replace(/[\r\n]+/g, ' '));
		assert.ok(Math.abs(Date.parse(fields.Date) - Date.now()) < 120000, fields.Date);
		assert.match(fields['Message-ID'], /^<reminder-[0-9.]+@example\.org>$/);
		const text = Buffer.from(body, 'base64').toString();
		assert.ok(text.startsWith(`${title}\n`) && /\n\d{4}-\d\d-\d\d \d\d:\d\d - .*\(UTC\)\n/.test(text), text);
		assert.match(text, new RegExp(`\nRaum 1\nBcc: eve@example.org\n\nhttp://127\\.0\\.0\\.1:\\d+/\\?calendar=${calendar}&day=\\d{4}-\\d\\d-\\d\\d\n$`));
		const read = (what) => fs.readFileSync(path.join(mails, `plain.${what}`), 'utf8').trim().split('\n');
		assert.deepEqual(read('words'), ['-t -i 3']);
		const files = read('files').flatMap((line) => /(\d+) -> (.*)/.exec(line)?.slice(1, 3).join(' ') ?? []);
		assert.deepEqual(files.filter((file) => Number.parseInt(file) > 2 && !file.endsWith('/sendmail')), [], files.join('\n'));
		assert.deepEqual(read('env').map((line) => line.split('=')[0]).filter((name) => !['PATH', 'PWD', 'SHLVL', '_', 'OLDPWD'].includes(name)), []);
		assert.equal((await listed(anna)).length, 0);
	});

	test('a program that fails is run again; one that hangs holds up nobody, and is killed', async () => {
		fs.writeFileSync(path.join(mails, 'hold'), '');
		const [hangs, fails] = [await person('hangs', 'hangs@example.org'), await person('fails', 'fails@example.org')];
		await due('hangs', hangs);
		await waitUntil(() => found('hangs', 'try').length === 1, 'the program to hang');
		await due('fails', fails);
		await untilSent('fails');
		assert.deepEqual([found('fails', 'try').length, found('fails', 'sent').length], [3, 1]);
		assert.equal(found('hangs', 'sent').length, 0);
		await waitUntil(async () => (await cluster.psql(`SELECT failures FROM sheet.outbox WHERE uid = ${hangs.uid} AND failures > 0`)) !== '', 'the program to be killed', 90000);
		fs.rmSync(path.join(mails, 'hold'));
		await untilSent('hangs');
		assert.equal(found('hangs', 'sent').length, 1);
	});

	/** The gateway whose program runs, and the program. */
	async function running() {
		await waitUntil(() => found('hangs', 'try').length === 1, 'the program to hang');
		const program = Number(found('hangs', 'try')[0].split('.')[2]);
		const parent = Number(/^PPid:\s+(\d+)/m.exec(fs.readFileSync(`/proc/${program}/status`, 'utf8'))[1]);
		const started = cluster.gateways.find(({ service }) => service.pid === parent);
		assert.ok(started, 'a gateway has started it');
		return { started, program };
	}

	test('a gateway that stops waits for the program', async () => {
		for (const file of fs.readdirSync(mails)) fs.rmSync(path.join(mails, file));
		fs.writeFileSync(path.join(mails, 'hold'), '');
		await due('stop', await person('hangs', 'hangs@example.edu'));
		const { started } = await running();
		const stopped = started.stop();
		const log = path.join(cluster.directory, 'log', `gateway-${started.index}.log`);
		await waitUntil(() => fs.readFileSync(log, 'utf8').includes('signal to stop'), 'the gateway to stop');
		fs.rmSync(path.join(mails, 'hold'));
		await untilSent('hangs');
		await stopped;
		assert.deepEqual([found('hangs', 'try').length, found('hangs', 'sent').length], [1, 1]);
		await started.start();
	});

	test('one whose gateway is killed meanwhile is sent by another gateway', async () => {
		for (const file of fs.readdirSync(mails)) fs.rmSync(path.join(mails, file));
		fs.writeFileSync(path.join(mails, 'hold'), '');
		const user = await person('hangs', 'hangs@example.com');
		await due('killed', user);
		const { started: killed, program } = await running();
		await killed.kill();
		process.kill(-program, 'SIGKILL');
		fs.rmSync(path.join(mails, 'hold'));
		// Other gateways would pass over it for 40 seconds.
		await cluster.psql('UPDATE sheet.outbox SET mail_at = now() WHERE mail_at > now()');
		gateway = cluster.gateways.find((other) => other !== killed);
		await untilSent('hangs');
		assert.deepEqual([found('hangs', 'try').length, found('hangs', 'sent').length], [2, 1]);
		await killed.start();
	});

	test('one whose program ends after a crash of the server is sent once', async () => {
		for (const file of fs.readdirSync(mails)) fs.rmSync(path.join(mails, file));
		fs.writeFileSync(path.join(mails, 'hold'), '');
		await due('crash', await person('hangs', 'hangs@example.net'));
		await running();
		await cluster.restartPostgres('immediate');
		await waitUntil(async () => (await request(gateway, 'GET', '/readyz')).status === 200, 'the gateway to serve again');
		fs.rmSync(path.join(mails, 'hold'));
		await untilSent('hangs');
		assert.deepEqual([found('hangs', 'try').length, found('hangs', 'sent').length], [1, 1]);
	});

	test('nobody is sent more than a hundred a day, nor one without an address, nor of an event long past', async () => {
		const users = await Promise.all([person('full', 'full@example.org'), person('none', 'a@example.org, b@example.org'), person('past', 'past@example.org'), person('last', 'last@example.org')]);
		await cluster.psql(`INSERT INTO sheet.mailed VALUES (${users[0].uid}, (now() AT TIME ZONE 'UTC')::date, 100)`);
		const values = users.map(({ uid }, i) => `(${uid}, ${calendar}, 'u', now() ${i === 2 ? "- interval '2 days'" : ''}, now(), false, 'UTC', 'x', '')`);
		await cluster.psql(`INSERT INTO sheet.outbox (uid, sheet_id, task_uid, starts_at, ends_at, all_day, zone, title, place) VALUES ${values}`);
		await untilSent('last');
		const left = (await cluster.psql(`SELECT uid || ' ' || (mail_at IS NULL) FROM sheet.outbox WHERE uid IN (${users.map(({ uid }) => uid)}) ORDER BY uid`)).split('\n');
		assert.deepEqual(left, users.slice(0, 3).map(({ uid }) => uid).sort((a, b) => a - b).map((uid) => `${uid} true`));
		for (const name of ['full', 'a', 'past']) assert.equal(found(name, 'try').length, 0, name);
		assert.equal(await cluster.psql(`SELECT mails FROM sheet.mailed WHERE uid = ${users[3].uid}`), '1');
	});
});
