/*
 * documented.mjs - holds answers of gateways against docs/openapi.yaml, in the form that the build of the page makes of it: the
 * statuses of an operation, and the types that its answers have with each.
 */
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

let operations;

/** [{pattern of the path, its operations by method}]; none without a built page. */
function load() {
	const page = process.env.PG_SHEET_WEB_ROOT ?? fileURLToPath(new URL('../../gateway/web/dist', import.meta.url));
	const file = path.join(page, 'openapi.json');
	if (!fs.existsSync(file)) return [];
	const document = JSON.parse(fs.readFileSync(file, 'utf8'));
	const resolved = (node) => (node?.$ref ? resolved(node.$ref.slice(2).split('/').reduce((at, key) => at[key], document)) : node);
	return Object.entries(document.paths).map(([address, item]) => ({
		pattern: new RegExp(`^${address.replace(/[.]/g, '\\.').replace(/\{id\}/g, '[0-9]+').replace(/\{\w+\}/g, '[^/]+')}$`),
		item: Object.fromEntries(
			Object.entries(item).map(([method, { responses = {} }]) => [
				method,
				Object.fromEntries(Object.entries(responses).map(([status, response]) => [status, Object.keys(resolved(response).content ?? {})])),
			]),
		),
	}));
}

/**
 * The status or the content type of an answer that the document lacks; undefined: it has both. Answers of other servers, and of
 * addresses that the gateway does not serve on that port, are not checked.
 */
export function undocumented(method, target, { status, headers, text = '' }) {
	operations ??= load();
	const [address] = target.split('?');
	const responses = operations.find(({ pattern }) => pattern.test(address))?.item[method === 'HEAD' ? 'get' : method.toLowerCase()];
	if (!responses || !headers['x-request-id'] || (status === 404 && text.includes('"no such address"'))) return undefined;
	const types = responses[status];
	const [type] = (headers['content-type'] ?? '').split(';');
	if (!types) return `${method} ${address}: status ${status} is not in docs/openapi.yaml: ${text.slice(0, 200)}`;
	if (types.length === 0 ? type === '' : types.includes(type) || types.includes('*/*')) return undefined;
	return `${method} ${address}: ${status} of type "${type}" is not in docs/openapi.yaml`;
}
