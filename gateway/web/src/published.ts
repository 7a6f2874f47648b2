// published.ts - keeps the table of a published view (/s/KEY) current: asks for the page again while it is shown, by a
// conditional request, and puts its parts in place. It needs no cookie, so that it works in frames of other sites.
const usualMs = 4000;
const longestMs = 60000;

let wait = usualMs;
let busy = false;
let timer: ReturnType<typeof setTimeout> | undefined;
let etag = document.querySelector('main')?.dataset.etag;

function show(html: string): void {
	const page = new DOMParser().parseFromString(html, 'text/html');
	const body = document.querySelector('main');
	const table = page.querySelector('table');
	document.title = page.title;
	if (!body || !table) {
		document.body.replaceChildren(...page.body.childNodes);
		return;
	}
	const [title, heading] = [page.querySelector('h1'), document.querySelector('h1')];
	if (title && heading) heading.textContent = title.textContent;
	body.replaceChildren(table); // the element that scrolls stays
}

async function refresh(): Promise<void> {
	if (busy) return;
	busy = true;
	try {
		const headers: HeadersInit = { accept: 'text/html', ...(etag ? { 'if-none-match': etag } : {}) };
		const answer = await fetch(location.pathname, { cache: 'no-store', credentials: 'omit', headers, signal: AbortSignal.timeout?.(longestMs) });
		if (answer.status === 200 || answer.status === 404) show(await answer.text());
		if (answer.status === 404) {
			etag = undefined;
			return; // the link has ended
		}
		if (answer.status === 200) etag = answer.headers.get('etag') ?? undefined;
		wait = answer.status === 200 || answer.status === 304 ? usualMs : Math.min(wait * 2, longestMs);
	} catch {
		wait = Math.min(wait * 2, longestMs);
	} finally {
		busy = false;
	}
	later();
}

/** Nothing is asked for while nobody sees the page. */
function later(): void {
	clearTimeout(timer);
	if (!document.hidden) timer = setTimeout(() => void refresh(), wait);
}

document.addEventListener('visibilitychange', () => {
	clearTimeout(timer);
	if (!document.hidden) timer = setTimeout(() => void refresh(), 0);
});
later();
