// sources.ts - which links are published views, and the pages that may show one in a frame. No DOM.

export const isPublished = (role: string, hasPassword: boolean): boolean => role === 'viewer' && !hasPassword;

/** The gateway's limit of all sources together. */
const mostBytes = 1000;
const hostPattern = /^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)*(:[0-9]{1,5})?$/;

/** The source of an address, which may lack the scheme and have a path; null: it is none. */
function sourceOf(address: string): string | null {
	const [, scheme = 'https://', wild = '', rest = ''] = /^(https?:\/\/)?(\*\.)?(.*)$/i.exec(address)!;
	if (rest.includes('://')) return null;
	try {
		const { protocol, host } = new URL(scheme + rest);
		return hostPattern.test(host) ? `${protocol}//${wild}${host}` : null;
	} catch {
		return null;
	}
}

/** The sources that a person has typed, as the gateway takes them; `invalid`: the first that is none, or all if they are too long. */
export function sourcesOf(text: string): { embed: string } | { invalid: string } {
	const typed = text.split(/[\s,;]+/).filter((address) => address !== '');
	const invalid = typed.find((address) => sourceOf(address) === null);
	const embed = [...new Set(typed.map(sourceOf))].join(' ');
	if (invalid !== undefined || embed === '' || embed.length > mostBytes) return { invalid: invalid ?? text };
	return { embed };
}
