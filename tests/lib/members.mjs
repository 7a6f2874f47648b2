/* members.mjs - what gateway/http/routes/members.c lists: the members of JSON bodies of protocol v2. */
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { repository } from './cluster.mjs';

/** The rows of members[]: "METHOD path" to the names of members, sorted. */
export function memberRows() {
	const source = fs.readFileSync(path.join(repository, 'gateway/http/routes/members.c'), 'utf8');
	const linkNames = /#define MEMBERS_LINK\s+"([^"]+)"/.exec(source)[1];
	const table = /^static const Members members\[\] = \{\n(.*?)^\};/ms.exec(source)[1];
	const found = [...table.matchAll(/\{"([^"]+)", METHOD_(\w+), (.+)\}/g)];
	assert.equal(found.length, table.match(/\{"/g).length, 'each row is understood');
	return new Map(found.map(([, route, method, names]) => [`${method} ${route}`, names.replace('MEMBERS_LINK', linkNames).replaceAll('"', '').split(/ +/).sort()]));
}
