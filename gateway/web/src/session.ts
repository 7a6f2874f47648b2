// session.ts - who is signed in, in this tab: the token is kept in sessionStorage and never in the page's address.

export interface Session {
	token: string;
	uid: number;
	username: string;
}

const key = 'pg_sheet.session';

export function loadSession(): Session | null {
	try {
		const value = JSON.parse(sessionStorage.getItem(key) ?? 'null');
		return value && typeof value.token === 'string' && typeof value.username === 'string' ? (value as Session) : null;
	} catch {
		return null;
	}
}

export function saveSession(session: Session): void {
	sessionStorage.setItem(key, JSON.stringify(session));
}

export function endSession(): void {
	sessionStorage.removeItem(key);
}
