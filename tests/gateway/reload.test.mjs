/* SIGHUP: settings and signing keys are read again while the gateway serves. */
import { after, before, test } from 'node:test';
import assert from 'node:assert/strict';
import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Cluster, waitUntil, writePrivateFile } from '../lib/cluster.mjs';
import { Editor, call, login, newSheet, post, refused, register, request, tokenParts } from '../lib/client.mjs';

let cluster;
let gateway;
let keyFile;
let configFile;

before(async () => {
	cluster = await Cluster.start({ gateways: 0 });
	keyFile = path.join(cluster.directory, 'jwt.key');
	configFile = path.join(cluster.directory, 'gateway.conf');
	writePrivateFile(configFile, 'allowed-origins = https://one.example\n');
	gateway = await cluster.addGateway({ config: configFile });
});
after(() => cluster?.stop());

const log = () => fs.readFileSync(path.join(cluster.directory, 'log', 'gateway-0.log'), 'utf8');

/** SIGHUP; resolves to what was logged until it was done. */
async function hangUp() {
	const start = log().length;
	gateway.service.signal('SIGHUP');
	await waitUntil(() => /(error not|info) reloaded/.test(log().slice(start)), 'the reload');
	return log().slice(start);
}

test('keys rotate without a restart: the first signs, all verify, a removed one revokes', async () => {
	const fresh = crypto.randomBytes(32).toString('hex');
	const user = await register(gateway);
	const fid = await newSheet(gateway, user);
	const editor = await Editor.open(gateway, user, fid);
	assert.equal(tokenParts(user.token).header.kid, 'k1');

	writePrivateFile(keyFile, `k1:${cluster.jwtKey}\nk2:${fresh}\n`);
	await hangUp();
	assert.equal(tokenParts((await login(gateway, user)).token).header.kid, 'k1', 'the second key only verifies');

	writePrivateFile(keyFile, `k2:${fresh}\nk1:${cluster.jwtKey}\n`);
	await hangUp();
	const { token } = await login(gateway, user);
	assert.equal(tokenParts(token).header.kid, 'k2');
	await call(gateway, '/getuser', { token: user.token }, 10);
	await call(gateway, '/getuser', { token }, 10);
	assert.equal(editor.closed, null, 'adding keys disturbs nobody');

	writePrivateFile(keyFile, `k2:${fresh}\n`);
	await hangUp();
	assert.equal((await editor.waitClosed()).code, 1012, 'when a key goes, live editors come again');
	await refused(gateway, '/getuser', { token: user.token }, 1);
	await assert.rejects(Editor.open(gateway, user, fid), (error) => error.json?.msg === 1);
	const again = await Editor.open(gateway, { ...user, token }, fid);
	await again.close();
});

test('wrong keys and wrong settings change nothing, and the log says why', async () => {
	const good = fs.readFileSync(keyFile, 'utf8');
	const user = await register(gateway);
	writePrivateFile(keyFile, 'k3:short\n');
	assert.match(await hangUp(), /k3.*shorter[^]*not reloaded/);
	await call(gateway, '/getuser', { token: user.token }, 10);
	fs.chmodSync(keyFile, 0o644);
	assert.match(await hangUp(), /others may read[^]*not reloaded/);
	fs.chmodSync(keyFile, 0o600);
	writePrivateFile(keyFile, good);

	writePrivateFile(configFile, 'allowed-origins = https://two.example\nlease-seconds = never\n');
	assert.match(await hangUp(), /lease-seconds[^]*never[^]*not reloaded/);
	const allowed = async (origin) =>
		(await post(gateway, '/getuser', {}, { headers: { origin } })).headers['access-control-allow-origin'];
	assert.equal(await allowed('https://one.example'), 'https://one.example');
	assert.equal(await allowed('https://two.example'), undefined);

	writePrivateFile(configFile, 'allowed-origins = https://two.example\nweight = 7\n');
	assert.match(await hangUp(), /weight[^\n]*needs a restart[^]*info reloaded/);
	assert.equal(await allowed('https://one.example'), undefined);
	assert.equal(await allowed('https://two.example'), 'https://two.example');
	assert.equal((await request(gateway, 'GET', '/healthz')).status, 200);
});
