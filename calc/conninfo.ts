// conninfo.ts - libpq's connection strings, as the package pg takes connections: one for each host.
import fs from 'node:fs';
import type { ClientConfig } from 'pg';
import { SettingsError } from './settings';

/** The keywords of `host=/run/pg dbname='my sheets'`. */
function keywordsOf(text: string): Map<string, string> {
	const keywords = new Map<string, string>();
	const part = /\s*([a-z_]+)\s*=\s*(?:'((?:[^'\\]|\\.)*)'|((?:[^\s'\\]|\\.)*))(?:\s+|$)/gy;
	while (part.lastIndex < text.trimEnd().length) {
		const match = part.exec(text);
		if (!match) throw new SettingsError('database is not a connection string of libpq');
		keywords.set(match[1]!, (match[2] ?? match[3] ?? '').replace(/\\(.)/gs, '$1'));
	}
	return keywords;
}

/** postgresql://user:password@host1:port1,host2/dbname?sslmode=... */
function keywordsOfUri(text: string): Map<string, string> {
	const match = /^postgres(?:ql)?:\/\/(?:([^:@/?]*)(?::([^@/?]*))?@)?([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text);
	if (!match) throw new SettingsError('database is not a connection URI');
	const [, user, password, hosts = '', dbname, rest = ''] = match;
	const places = hosts.split(',').map((place) => /^(\[[^\]]*\]|[^:]*)(?::([0-9]*))?$/.exec(place) ?? ['', '', '']);
	const keywords = new Map<string, string>();
	const put = (name: string, value: string | undefined) => value && keywords.set(name, decodeURIComponent(value));
	put('user', user);
	put('password', password);
	put('host', places.map(([, host = '']) => host.replace(/^\[|\]$/g, '')).join());
	if (places.some(([, , port]) => port)) put('port', places.map(([, , port]) => port ?? '').join());
	put('dbname', dbname);
	for (const [name, value] of new URLSearchParams(rest)) keywords.set(name, value);
	return keywords;
}

/** The sslmode `prefer` is not known to pg: there is no TLS unless it is required. */
function tlsOf(keywords: Map<string, string>): ClientConfig['ssl'] {
	const mode = keywords.get('sslmode') ?? process.env['PGSSLMODE'] ?? 'prefer';
	if (['disable', 'allow', 'prefer'].includes(mode)) return false;
	if (!['require', 'verify-ca', 'verify-full'].includes(mode)) throw new SettingsError(`sslmode=${mode} is not known`);
	const read = (name: string) => {
		const file = keywords.get(name) ?? process.env[`PG${name.toUpperCase()}`];
		return file && file !== 'system' ? fs.readFileSync(file) : undefined;
	};
	const [ca, cert, key] = [read('sslrootcert'), read('sslcert'), read('sslkey')];
	const verify = mode !== 'require' || ca !== undefined;
	const tls = {
		rejectUnauthorized: verify,
		...(ca && { ca }),
		...(cert && { cert }),
		...(key && { key }),
	};
	return mode === 'verify-full' ? tls : { ...tls, checkServerIdentity: () => undefined };
}

export function connectionsOf(database: string): ClientConfig[] {
	const keywords = /^postgres(ql)?:\/\//.test(database) ? keywordsOfUri(database) : keywordsOf(database);
	const hosts = (keywords.get('host') ?? keywords.get('hostaddr') ?? process.env['PGHOST'] ?? '').split(',');
	const ports = (keywords.get('port') ?? process.env['PGPORT'] ?? '').split(',');
	if (keywords.has('passfile')) process.env['PGPASSFILE'] = keywords.get('passfile');
	const common: ClientConfig = {
		keepAlive: true,
		connectionTimeoutMillis: 10_000,
		ssl: tlsOf(keywords) ?? false,
	};
	for (const [name, key] of [
		['user', 'user'],
		['password', 'password'],
		['dbname', 'database'],
	] as const)
		if (keywords.has(name)) common[key] = keywords.get(name)!;
	return hosts.map((host, i) => ({
		...common,
		host: host || '/var/run/postgresql',
		port: Number((ports.length === 1 ? ports[0] : ports[i]) || 5432),
	}));
}
