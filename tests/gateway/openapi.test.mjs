/*
 * docs/openapi.yaml and the gateway describe each other: every row of the table of routes is in the document, with its scope, and
 * everything in the document is answered. What the routes for programs answer has the form that the document gives.
 */
import { after, before, describe, test } from 'node:test';
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import Ajv from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { Validator } from '@seriousme/openapi-schema-validator';
import { parse } from 'yaml';
import { Cluster, repository, waitUntil } from '../lib/cluster.mjs';
import { startCalc } from '../lib/calc.mjs';
import { memberRows } from '../lib/members.mjs';
import { call, multipart, post, register, request } from '../lib/client.mjs';

const methods = ['get', 'post', 'put', 'patch', 'delete'];
const document = parse(fs.readFileSync(path.join(repository, 'docs/openapi.yaml'), 'utf8'), { merge: true, maxAliasCount: -1 });
const operations = Object.entries(document.paths).flatMap(([address, item]) =>
	methods.filter((method) => item[method]).map((method) => ({ ...item[method], address, method: method.toUpperCase() })),
);
const nameOf = ({ method, address }) => `${method} ${address}`;

/** The rows of routes[]: [method and path, scope, caller]. */
function rows() {
	const source = fs.readFileSync(path.join(repository, 'gateway/http/routes/router.c'), 'utf8');
	const table = /^static const Route routes\[\] = \{\n(.*?)^\};/ms.exec(source)[1];
	const found = [...table.matchAll(/\{"([^"]+)",\s*METHOD_(\w+),\s*(\w+),[^{}]*?,\s*SCOPE_(\w+)\}/g)];
	assert.equal(found.length, table.match(/\{"/g).length, 'each row is understood');
	// OpenAPI has no methods of WebDAV
	return found.filter(([, , method]) => methods.includes(method.toLowerCase())).map(([, route, method, caller, scope]) => [`${method} ${route}`, scope.toLowerCase(), caller]);
}

let cluster;
let gateway;
let anna;
let ben;
let calc;
before(async () => {
	cluster = await Cluster.start({ gatewayFlags: { 'default-link-role': 'none' } });
	[gateway] = cluster.gateways;
	anna = await register(gateway);
	ben = await register(gateway);
});
after(async () => {
	await calc?.stop();
	await cluster?.stop();
});

describe('the document', () => {
	test('is a document of OpenAPI 3.1', async () => {
		const result = await new Validator().validate(structuredClone(document));
		assert.ok(result.valid, JSON.stringify(result.errors));
		const names = operations.map(({ operationId }) => operationId);
		assert.equal(new Set(names).size, names.length, 'each operation has a name of its own');
		const tags = new Set(document.tags.map(({ name }) => name));
		for (const operation of operations) assert.ok(operation.summary && operation.tags.every((tag) => tags.has(tag)), nameOf(operation));
	});

	test('has every row of the table of routes, and nothing else, with its scope and caller', () => {
		const documented = operations.map((operation) => [
			nameOf(operation).replace(/\{\w+\}(\/\{\w+\})*/g, '*'),
			operation['x-scope'] ?? 'none',
			operation['x-admin'] ? 'OPERATOR' : '',
		]);
		const routed = rows().map(([name, scope, caller]) => [name, scope, caller === 'OPERATOR' ? caller : '']);
		assert.deepEqual(documented.map(String).sort(), routed.map(String).sort());
	});

	test('has the members of each JSON body of v2, and the gateway refuses others by their name', async () => {
		const known = memberRows();
		for (const operation of operations) {
			if (!operation.address.startsWith('/v2/') || !['POST', 'PUT', 'PATCH'].includes(operation.method) || /\/import(\/preview)?$/.test(operation.address)) continue;
			const name = nameOf(operation).replace(/\{\w+\}/g, '*');
			let schema = operation.requestBody?.content['application/json'].schema;
			if (schema?.$ref) schema = schema.$ref.slice(2).split('/').reduce((at, key) => at[key], document);
			if (schema) assert.equal(schema.additionalProperties, false, name);
			const members = Object.keys(schema?.properties ?? {}).filter((member) => member !== 'token');
			assert.deepEqual(members.sort(), known.get(name) ?? [], name);
			known.delete(name);
			const answer = await request(gateway, operation.method, operation.address.replace(/\{\w+\}/g, '7'), {
				headers: { authorization: `Bearer ${anna.token}`, 'content-type': 'application/json' },
				body: '{"expire":1}',
			});
			assert.equal(answer.status, 400, `${name}: ${answer.text}`);
			assert.match(answer.json.data, /^unknown member of the body: expire; it may have: /, name);
		}
		assert.deepEqual([...known.keys()], [], 'each row is of an operation');
	});

	test('is served by gateways', async () => {
		const answer = await request(gateway, 'GET', '/openapi.json');
		assert.equal(answer.status, 200);
		assert.match(answer.headers['content-type'], /json/);
		assert.deepEqual(answer.json, document);
	});

	test('names addresses that the gateway answers, and the methods that it allows', async () => {
		for (const operation of operations) {
			const at = operation['x-admin'] ? gateway.admin : gateway;
			const address = operation.address.replace('{id}', '999999').replace('{file}', 'index.html').replace(/\{\w+\}/g, '999999');
			if (operation.address === '/admin/drain') continue; // the gateway would leave: OPTIONS below
			const body = operation.method === 'POST' || operation.method[0] === 'P' ? '{}' : undefined;
			const answer = await request(at, operation.method, address, { headers: body ? { 'content-type': 'application/json', 'content-length': 2 } : {}, body });
			assert.ok(answer.status !== 405 && answer.json?.data !== 'no such address', `${nameOf(operation)}: ${answer.status} ${answer.text}`);
			if (operation.address === '/{file}') assert.equal(answer.status, 200);
		}
		for (const [address, item] of Object.entries(document.paths)) {
			const admin = methods.some((method) => item[method]?.['x-admin']);
			const options = await request(admin ? gateway.admin : gateway, 'OPTIONS', address.replace(/\{\w+\}/g, '7'));
			const allowed = options.headers.allow.toLowerCase().split(', ').filter((method) => methods.includes(method));
			assert.deepEqual(allowed.sort(), methods.filter((method) => item[method]).sort(), address);
		}
	});
});

describe('answers have the form that the document gives', () => {
	const ajv = new Ajv({ strict: false, allErrors: true });
	formats(ajv);
	ajv.addSchema({ $id: 'openapi', ...document });
	const seen = new Set();

	/** The part of the document to which a reference leads. */
	const resolved = (node) => (node?.$ref ? resolved(node.$ref.slice(2).split('/').reduce((at, key) => at[key], document)) : node);
	/** A schema whose references are looked up in the document. */
	const absolute = (schema) => JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"openapi#/'));

	/** The operation of an address that was requested. */
	function operationOf(method, target) {
		const [address] = target.split('?');
		const matches = (pattern) => new RegExp(`^${pattern.replace(/[.]/g, '\\.').replace(/\{id\}/g, '[0-9]+').replace(/\{\w+\}/g, '[^/]+')}$`).test(address);
		return operations.find((operation) => operation.method === method && matches(operation.address));
	}

	function check(schema, value, what) {
		const validate = ajv.compile(absolute(schema));
		assert.ok(validate(value), `${what}: ${JSON.stringify(validate.errors)} ${JSON.stringify(value)?.slice(0, 500)}`);
	}

	/** Sends a request; its body and its answer must have the documented forms. */
	async function send(status, method, target, body, { token = anna.token, headers = {} } = {}) {
		const operation = operationOf(method, target);
		const text = body === undefined || typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
		const answer = await request(gateway, method, target, {
			headers: {
				...(token ? { authorization: `Bearer ${token}` } : {}),
				...(text === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
				...headers,
			},
			body: text,
		});
		const what = `${method} ${target}`;
		assert.equal(answer.status, status, `${what}: ${answer.text}`);
		const documented = resolved(operation.responses[String(status)]);
		assert.ok(documented, `${what}: ${status} is documented`);
		const sent = resolved(operation.requestBody)?.content?.['application/json']?.schema;
		if (status < 300 && sent && text !== undefined) check(sent, JSON.parse(text), `${what}: the body`);
		const schema = documented.content?.['application/json']?.schema;
		if (schema) check(schema, answer.json, what);
		else if (!documented.content) assert.equal(answer.text, '', what);
		for (const name of Object.keys(documented.headers ?? {})) assert.ok(answer.headers[name.toLowerCase()], `${what}: ${name}`);
		if (status < 400) seen.add(operation.operationId);
		return answer.json;
	}

	test('of all operations that programs use', async () => {
		const { id } = await send(201, 'POST', '/v2/sheets', { name: 'Plan', rows: 10, cols: 5 });
		const at = `/v2/sheets/${id}`;
		await send(200, 'GET', '/v2/sheets?limit=1');
		await send(200, 'GET', '/v2/sheets');
		await send(200, 'GET', at);
		await send(200, 'PATCH', at, { name: 'Other' });
		await send(200, 'POST', `${at}/rename`, { name: 'Plan' });
		await send(200, 'GET', `${at}/route`);
		await send(200, 'PUT', `${at}/cells?range=B2:D3`, document.paths['/v2/sheets/{id}/cells'].put.requestBody.content['application/json'].example);
		await send(200, 'PATCH', `${at}/cells`, document.paths['/v2/sheets/{id}/cells'].patch.requestBody.content['application/json'].example);
		await send(200, 'POST', `${at}/append`, { values: [['x', 1.5, null]] });
		await send(412, 'PUT', `${at}/cells?range=B2`, { values: [[1]] }, { headers: { 'if-match': '"1"' } });
		await send(413, 'PUT', `${at}/cells?range=A1`, { values: [Array(16385).fill(1)] });
		await send(400, 'PUT', `${at}/cells`, { values: [[1]] });
		await send(200, 'GET', `${at}/cells?range=A1:Z100&styles=true`);
		await send(200, 'GET', `${at}.csv`);
		await send(200, 'GET', `${at}.tsv?ref=A1:B2&escape_formulas=true`);
		await send(200, 'GET', `${at}.jsonl?ref=A1:B2`);
		await send(400, 'GET', `${at}.jsonl?ref=x`);
		const { version } = await send(201, 'POST', `${at}/versions`, { label: 'first' });
		await send(409, 'POST', `${at}/versions`, {});
		await send(200, 'POST', `${at}/label`, { version, label: 'the first' });
		await send(200, 'PUT', `${at}/cells?range=A1`, { values: [['changed']] });
		await send(200, 'GET', `${at}/diff?from=${version}`);
		await send(200, 'POST', `${at}/rollback`, { version });
		await send(404, 'POST', `${at}/rollback`, { version: 999 });
		await send(200, 'GET', `${at}/versions`);
		await send(200, 'GET', `${at}/log`);
		await send(204, 'PUT', `${at}/members/${ben.username}`, { role: 'viewer' });
		await send(403, 'PUT', `${at}/cells?range=A1`, { values: [[1]] }, { token: ben.token });
		await send(409, 'PUT', `${at}/members/${anna.username}`, { role: 'viewer' });
		await send(200, 'GET', `${at}/members`);
		await send(200, 'GET', `${at}/access`);
		await send(204, 'DELETE', `${at}/members/${ben.username}`);
		await send(403, 'GET', at, undefined, { token: ben.token });
		const link = await call(gateway, '/sharelink', { token: anna.token, fid: id, role: 'viewer' }, 12);
		await send(200, 'POST', `${at}/open`, { link }, { token: ben.token });
		const shared = await send(200, 'POST', `${at}/links`, { role: 'viewer', label: 'For all', ref: 'A1:B2', password: null });
		await send(400, 'POST', `${at}/links`, { role: 'king' });
		await send(200, 'PATCH', `${at}/links/${shared.link}`, { label: 'For some', expires: null });
		const guest = await send(200, 'POST', '/v2/link', { link: shared.key, name: 'Zoe' }, { token: null });
		await send(200, 'GET', '/v2/link/cells', undefined, { token: guest.token });
		await send(403, 'PATCH', '/v2/link/cells', { cells: [[0, 0, 'x', '']] }, { token: guest.token });
		await send(200, 'PATCH', `${at}/links/${shared.link}`, { role: 'editor' });
		await send(200, 'PATCH', '/v2/link/cells', { cells: [[0, 0, 'x'], [1, 1, 5]] }, { token: guest.token });
		await send(412, 'PATCH', '/v2/link/cells', { cells: [[0, 0, 'y', null]] }, { token: guest.token });
		await send(403, 'GET', at, undefined, { token: guest.token });
		const view = await send(200, 'POST', `${at}/links`, { embed: 'https://example.org', index: true });
		await send(200, 'GET', `${view.published}.json`, undefined, { token: null });
		await send(200, 'GET', `${at}/links`);
		await send(200, 'DELETE', `${at}/links/${shared.link}`);
		await send(404, 'DELETE', `${at}/links/999999`);
		await send(404, 'POST', '/v2/link', { link: shared.key, name: 'Zoe' }, { token: null });
		const hook = await send(201, 'POST', `${at}/webhooks`, { url: 'https://example.org/' });
		await send(400, 'POST', `${at}/webhooks`, { url: 'http://10.0.0.1/' });
		await send(200, 'GET', `${at}/webhooks`);
		await send(200, 'PATCH', `${at}/webhooks/${hook.webhook}`, { active: false });
		await send(409, 'POST', `${at}/webhooks/test/${hook.webhook}`, {});
		await send(200, 'PATCH', `${at}/webhooks/${hook.webhook}`, { active: true, url: 'https://127.0.0.1.invalid/' });
		await send(200, 'POST', `${at}/webhooks/test/${hook.webhook}`, {});
		await send(200, 'DELETE', `${at}/webhooks/${hook.webhook}`);
		await send(404, 'DELETE', `${at}/webhooks/${hook.webhook}`);
		const record = await send(200, 'POST', '/record', { content: 'twenty bytes are enough', title: 'x', lang: 'csv', expiration: 60 });
		await send(400, 'POST', '/record', { content: 'short' });
		await send(413, 'POST', '/record', { content: 'x'.repeat(32769) });
		await send(200, 'GET', `/record/${record.key}`);
		await send(200, 'GET', `/p/${record.key}`);
		await send(404, 'GET', '/p/x');
		await send(200, 'POST', '/paste', { content: 'twenty bytes are enough' });
		const form = multipart([['token', anna.token], ['fid', `${id}`], ['uploadfile', Buffer.from('x'), 'x.txt', 'text/plain']]);
		assert.equal((await request(gateway, 'POST', '/uploadchunk', form)).json.msg, 33);
		await send(200, 'GET', `${at}/files`);
		await send(200, 'POST', '/getallchunks', { fid: id });
		const [file] = (await send(200, 'GET', '/v2/files')).files;
		await send(200, 'GET', new URL(file.url).pathname);
		await send(200, 'GET', `/getchunk?fid=${id}&chunk=${file.name}`);
		await send(200, 'DELETE', `/v2/files/${file.id}`);
		const made = await send(201, 'POST', '/v2/tokens', { label: 'x', scopes: ['read', 'upload'], days: 7 });
		await send(200, 'GET', '/v2/tokens');
		await send(403, 'GET', '/v2/tokens', undefined, { token: made.token });
		await send(403, 'DELETE', at, undefined, { token: made.token });
		await send(200, 'POST', '/v2/sheets/import?name=CSV', 'a,b', { token: made.token, headers: { 'content-type': 'text/csv' } });
		await send(400, 'POST', '/v2/sheets/import?name=CSV', '"', { token: made.token });
		await send(400, 'POST', '/v2/sheets/import?name=CSV&encoding=UTF-16LE', 'a,b', { token: made.token });
		await send(200, 'POST', '/v2/sheets/import/preview', 'a;b', { token: made.token, headers: { 'content-type': 'text/csv' } });
		await send(200, 'POST', '/v2/sheets/import/preview?format=jsonl', '[1', { token: made.token, headers: { 'content-type': 'text/csv' } });
		await send(400, 'POST', '/v2/sheets/import/preview?separator=', 'a;b', { token: made.token });
		await send(403, 'PUT', `${at}/import?ref=A1`, 'a;b', { token: made.token });
		await send(200, 'PUT', `${at}/import?ref=A1`, 'a;b', { headers: { 'content-type': 'text/csv' } });
		await send(400, 'PUT', `${at}/import?ref=A`, 'a;b');
		await send(404, 'PUT', '/v2/sheets/999999/import?ref=A1', 'a;b');
		await send(204, 'DELETE', `/v2/tokens/${made.id}`);
		await send(401, 'GET', '/v2/sheets', undefined, { token: made.token });
		await send(409, 'DELETE', `${at}?purge=true`);
		await send(204, 'DELETE', at);
		await send(410, 'DELETE', at);
		await send(200, 'GET', at);
		await send(204, 'POST', `${at}/recover`, {});
		await send(404, 'GET', '/v2/sheets/999999');
		const book = await send(201, 'POST', '/v2/books', { name: 'Plans' });
		const books = `/v2/books/${book.id}`;
		await send(201, 'POST', `${books}/tabs`, { sheet: id });
		const tab = await send(201, 'POST', `${books}/tabs`, { name: 'Second', rows: 5, cols: 5, before: id });
		await send(409, 'POST', `${books}/tabs`, { name: 'second' });
		await send(201, 'POST', `${books}/tabs`, { name: 'Third', copy: tab.id });
		await send(409, 'PATCH', at, { name: 'Second' });
		await send(409, 'POST', `${at}/rename`, { name: 'Second' });
		await send(204, 'PATCH', `${books}/tabs/${tab.id}`, { before: null, colour: '#1D5FBF', hidden: true });
		await send(400, 'PATCH', `${books}/tabs/${tab.id}`, { colour: 'green' });
		await send(204, 'PATCH', books, { name: 'All plans' });
		await send(204, 'PUT', `${books}/members/${ben.username}`, { role: 'viewer' });
		await send(409, 'PUT', `${books}/members/${anna.username}`, { role: 'viewer' });
		await send(200, 'GET', `${books}/members`);
		await send(200, 'GET', books, undefined, { token: ben.token });
		await send(403, 'PATCH', books, { name: 'x' }, { token: ben.token });
		const own = await send(201, 'POST', `${books}/duplicate`, { name: 'Of ben' }, { token: ben.token });
		await send(403, 'GET', `/v2/books/${own.id}`);
		await send(204, 'DELETE', `${books}/members/${ben.username}`);
		await send(200, 'GET', '/v2/books?limit=1');
		await send(200, 'GET', '/v2/sheets');
		const workbook = { headers: { 'content-type': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet' } };
		await send(503, 'POST', '/v2/books/import?name=Workbook', Buffer.from('x'), workbook);
		calc = startCalc(cluster);
		await waitUntil(async () => (await cluster.psql('SELECT count(*) FROM sheet.calculator')) === '1', 'calc to report');
		await send(400, 'POST', '/v2/books/import?name=Workbook', Buffer.from('x'), workbook);
		await send(200, 'GET', `/v2/sheets/${tab.id}.xlsx`);
		await send(200, 'GET', `${books}.xlsx`);
		const { body: bytes } = await request(gateway, 'GET', `${books}.xlsx`, { headers: { authorization: `Bearer ${anna.token}` } });
		await send(201, 'POST', '/v2/books/import?name=Workbook', bytes, workbook);
		await send(204, 'DELETE', `${books}/tabs/${id}`);
		await send(404, 'DELETE', `${books}/tabs/${id}`);
		await send(409, 'DELETE', `${books}?purge=true`);
		await send(204, 'DELETE', books);
		await send(410, 'DELETE', books);
		await send(410, 'PATCH', books, { name: 'x' });
		await send(200, 'GET', books);
		await send(204, 'POST', `${books}/recover`, {});
		await send(409, 'POST', `${books}/recover`, {});
		await send(404, 'GET', '/v2/books/999999');
		const team = await send(201, 'POST', '/v2/calendars', { name: 'Team', zone: 'Europe/Berlin' });
		await send(204, 'PUT', `/v2/calendars/${team.id}`);
		await send(409, 'PUT', `/v2/calendars/${id}`);
		await send(204, 'PATCH', `/v2/calendars/${team.id}`, { colour: '#1d5fbf' });
		await send(400, 'PATCH', `/v2/calendars/${team.id}`, { colour: 'green' });
		await send(200, 'GET', '/v2/calendars');
		const tasks = `/v2/calendars/${team.id}/tasks`;
		const { uid } = await send(201, 'POST', tasks, { cells: { Title: 'Standup', Start: '2031-01-06 09:00', Repeats: 'FREQ=DAILY;COUNT=5', Who: anna.username } });
		await send(400, 'POST', tasks, { cells: { Title: 'x', Start: 'soon' } });
		await send(404, 'PATCH', `${tasks}/none`, { cells: {} });
		await send(200, 'PATCH', `${tasks}/${uid}`, { cells: { Start: '2031-01-07 11:00' }, scope: 'this', instance: '2031-01-07T09:00:00' });
		await send(200, 'GET', `${tasks}/${uid}?instance=2031-01-07T09:00:00`);
		await send(204, 'PUT', `/v2/calendars/${team.id}/answers/${uid}`, { answer: 'tentative' });
		await send(404, 'PUT', `/v2/calendars/${team.id}/answers/${uid}`, { answer: null }, { token: ben.token });
		await send(200, 'GET', `/v2/calendars/entries?from=2031-01-01T00:00:00Z&to=2031-02-01T00:00:00Z&calendars=${team.id}`);
		await send(400, 'GET', '/v2/calendars/entries?from=2031-01-01&to=soon');
		await send(200, 'GET', '/v2/calendars/dots?month=2031-01');
		await send(204, 'DELETE', `${tasks}/${uid}`);
		const soon = new Date(Date.now() + 60000).toISOString().slice(0, 16).replace('T', ' ');
		await send(201, 'POST', tasks, { cells: { Title: 'Call', Start: soon, 'Time zone': 'UTC', Who: anna.username, Reminder: '1 h' } });
		const [reminder] = await waitUntil(async () => (({ reminders }) => reminders.length > 0 && reminders)(await send(200, 'GET', '/v2/reminders')), 'the reminder');
		await send(204, 'DELETE', `/v2/reminders?ids=${reminder.id}`);
		await send(400, 'DELETE', '/v2/reminders');
		const tags = ['sheets', 'books', 'cells', 'versions', 'members', 'files', 'pastes', 'tokens', 'tasks'];
		seen.add('uploadFile');
		const used = operations.filter(({ tags: own }) => own.some((tag) => tags.includes(tag))).map(({ operationId }) => operationId);
		assert.deepEqual(used.filter((name) => !seen.has(name)), [], 'each of them has been used');
	});

	test('of protocol v1', async () => {
		for (const [address, body] of [['/getuser', {}], ['/newsheet', { name: 'v1' }], ['/getsheet', { fid: 999999 }], ['/getuser', { limit: 'x' }]]) {
			const answer = await post(gateway, address, { token: anna.token, ...body });
			const { responses } = document.paths[address].post;
			check(resolved(responses[String(answer.status)]).content['application/json'].schema, answer.json, address);
		}
	});
});
