// published.ts - keeps the table of a published view (/s/KEY) current: hears by WebSocket that it has changed, asks for the page
// again by a conditional request, and puts its parts in place. It needs no cookie, so that it works in frames of other sites.
const usualMs = 4000;
const longestMs = 60000;
/** Many pages hear of a change at once: each waits for a part of this time. */
const spreadMs = 500;
const noSuchView = 4404;

let wait = usualMs;
let busy = false;
/** Something has changed while the page was being asked for. */
let again = false;
let ended = false;
let socket: WebSocket | undefined;
let timer: ReturnType<typeof setTimeout> | undefined;
let etag = document.querySelector('main')?.dataset.etag;

function show(html: string): void {
	// The page that says why there is no view has a style that the policy of this one does not permit.
	const page = new DOMParser().parseFromString(html.replace(/<style>.*?<\/style>/s, ''), 'text/html');
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
	again = busy;
	if (busy || ended) return;
	busy = true;
	try {
		const headers: HeadersInit = { accept: 'text/html', ...(etag ? { 'if-none-match': etag } : {}) };
		const answer = await fetch(location.pathname, { cache: 'no-store', credentials: 'omit', headers, signal: AbortSignal.timeout?.(longestMs) });
		if (answer.status === 200 || answer.status === 404) show(await answer.text());
		ended = answer.status === 404;
		if (answer.status === 200) etag = answer.headers.get('etag') ?? undefined;
		else if (answer.status !== 304 && !ended) retry();
	} catch {
		retry();
	} finally {
		busy = false;
	}
	if (ended) close();
	else if (again) void refresh();
}

function close(): void {
	clearTimeout(timer);
	socket?.close();
	socket = undefined;
}

/** Asks and connects again later: not at the same time as all others that a gateway has left. */
function retry(): void {
	close();
	if (document.hidden || ended) return;
	timer = setTimeout(connect, wait * (1 - Math.random() / 2));
	wait = Math.min(wait * 2, longestMs);
}

/** Asks for the page also if there is no connection, as behind proxies that permit none. */
function connect(): void {
	close();
	const key = location.pathname.split('/').pop()!;
	const opening = new WebSocket(`${location.origin.replace(/^http/, 'ws')}/sheetws?watch=${key}`, 'sheet.v2');
	socket = opening;
	void refresh();
	opening.onopen = () => {
		wait = usualMs;
		void refresh();
	};
	opening.onmessage = () => {
		clearTimeout(timer);
		timer = setTimeout(() => void refresh(), Math.random() * spreadMs);
	};
	opening.onclose = ({ code }) => {
		if (socket !== opening) return;
		socket = undefined;
		if (code === noSuchView) void refresh();
		else retry();
	};
}

/** Nothing is asked for while nobody sees the page. */
document.addEventListener('visibilitychange', () => (document.hidden || ended ? close() : connect()));
if (!document.hidden) connect();
