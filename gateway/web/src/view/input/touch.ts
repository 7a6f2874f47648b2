// touch.ts - the fingers of a phone on the cells: a swipe scrolls, a tap selects, a double tap edits, a long press selects
// more cells while the finger moves, and opens the menu if it does not.
//
// Univer knows the mouse alone, and would select cells during a swipe. Events of touch do not reach it; it gets those of a
// mouse that does the same.
import { canvasOf, type GridParts } from '../parts';

const slop = 8;
const longPressMs = 450;
const doubleTapMs = 350;
/** Speed that is left after a millisecond of coasting, and the least speed (pixels a millisecond). */
const friction = 0.997;
const leastSpeed = 0.02;

interface Point {
	clientX: number;
	clientY: number;
}

export function addTouch(parts: GridParts): () => void {
	const { host } = parts;
	let finger: {
		id: number;
		start: Point;
		last: Point;
		at: number;
		mode: 'tap' | 'scroll' | 'select';
		moved: boolean;
		timer: ReturnType<typeof setTimeout>;
	} | null = null;
	let speed = { x: 0, y: 0 };
	let coasting = 0;
	let tapped: (Point & { at: number }) | null = null;

	function mouse(type: string, { clientX, clientY }: Point, button = 0): void {
		const down = type === 'pointerdown' || type === 'pointermove';
		const canvas = canvasOf(host);
		const init = {
			clientX,
			clientY,
			button: type === 'pointermove' ? -1 : button,
			buttons: down ? (button === 2 ? 2 : 1) : 0,
			bubbles: true,
			cancelable: true,
			view: window,
		};
		canvas?.dispatchEvent(
			type === 'dblclick' ? new MouseEvent(type, init) : new PointerEvent(type, { ...init, pointerType: 'mouse', isPrimary: true, pointerId: 1 }),
		);
	}

	function press(point: Point, button = 0): void {
		mouse('pointerdown', point, button);
		mouse('pointerup', point, button);
	}

	function scroll(x: number, y: number, { clientX, clientY }: Point): void {
		canvasOf(host)?.dispatchEvent(new WheelEvent('wheel', { deltaX: x, deltaY: y, clientX, clientY, bubbles: true, cancelable: true }));
	}

	/** Whether the screen keyboard appears when Univer focuses its editor: only if a cell is to be edited. */
	function allowKeyboard(allowed: boolean): void {
		for (const editor of host.querySelectorAll<HTMLElement>('[contenteditable="true"]')) editor.inputMode = allowed ? '' : 'none';
	}

	function down(event: PointerEvent): void {
		cancelAnimationFrame(coasting);
		if (finger) return; // another finger
		const point = { clientX: event.clientX, clientY: event.clientY };
		const timer = setTimeout(() => {
			if (finger?.mode !== 'tap') return;
			finger.mode = 'select';
			allowKeyboard(false);
			mouse('pointerdown', point);
		}, longPressMs);
		finger = { id: event.pointerId, start: point, last: point, at: event.timeStamp, mode: 'tap', moved: false, timer };
		speed = { x: 0, y: 0 };
	}

	function move(event: PointerEvent): void {
		if (event.pointerId !== finger?.id) return;
		const [x, y] = [finger.last.clientX - event.clientX, finger.last.clientY - event.clientY];
		finger.moved ||= Math.hypot(event.clientX - finger.start.clientX, event.clientY - finger.start.clientY) > slop;
		if (!finger.moved) return;
		if (finger.mode === 'tap') {
			clearTimeout(finger.timer);
			finger.mode = 'scroll';
		}
		const ms = Math.max(1, event.timeStamp - finger.at);
		if (finger.mode === 'select') mouse('pointermove', event);
		else {
			scroll(x, y, event);
			speed = { x: x / ms, y: y / ms };
		}
		Object.assign(finger, { last: { clientX: event.clientX, clientY: event.clientY }, at: event.timeStamp });
	}

	function up(event: PointerEvent): void {
		if (event.pointerId !== finger?.id) return;
		const { mode, moved, timer, at } = finger;
		clearTimeout(timer);
		finger = null;
		if (mode === 'select') {
			mouse('pointerup', event);
			if (!moved && event.type === 'pointerup') press(event, 2);
		} else if (mode === 'scroll') {
			if (event.timeStamp - at < 60) coast(event);
		} else if (event.type === 'pointerup') tap(event);
	}

	function tap(event: PointerEvent): void {
		const again =
			tapped !== null && event.timeStamp - tapped.at < doubleTapMs && Math.hypot(event.clientX - tapped.clientX, event.clientY - tapped.clientY) < 3 * slop;
		tapped = again ? null : { clientX: event.clientX, clientY: event.clientY, at: event.timeStamp };
		allowKeyboard(again);
		press(event);
		if (again) mouse('dblclick', event);
	}

	/** Goes on with the speed at which the finger left, and ever slower. */
	function coast(point: Point): void {
		if (matchMedia('(prefers-reduced-motion: reduce)').matches) return;
		let before = performance.now();
		const step = (now: number) => {
			const ms = now - before;
			before = now;
			scroll(speed.x * ms, speed.y * ms, point);
			speed = { x: speed.x * friction ** ms, y: speed.y * friction ** ms };
			if (Math.hypot(speed.x, speed.y) > leastSpeed) coasting = requestAnimationFrame(step);
		};
		coasting = requestAnimationFrame(step);
	}

	const listeners = new AbortController();
	const handlers = { pointerdown: down, pointermove: move, pointerup: up, pointercancel: up };
	for (const [type, handle] of Object.entries(handlers)) {
		host.addEventListener(
			type,
			(event) => {
				const pointer = event as PointerEvent;
				if (pointer.pointerType !== 'touch' || (pointer.target !== canvasOf(host) && !finger)) return;
				pointer.stopImmediatePropagation();
				pointer.preventDefault();
				handle(pointer);
			},
			{ capture: true, signal: listeners.signal },
		);
	}
	// The browser makes these of a touch by itself.
	for (const type of ['contextmenu', 'mousedown', 'mouseup', 'click', 'dblclick']) {
		host.addEventListener(
			type,
			(event) => event.isTrusted && isOfTouch(event) && event.target === canvasOf(host) && (event.stopImmediatePropagation(), event.preventDefault()),
			{ capture: true, signal: listeners.signal },
		);
	}
	return () => {
		listeners.abort();
		cancelAnimationFrame(coasting);
		if (finger) clearTimeout(finger.timer);
	};
}

function isOfTouch(event: Event): boolean {
	return (
		(event as PointerEvent).pointerType === 'touch' ||
		(event as UIEvent & { sourceCapabilities?: { firesTouchEvents: boolean } }).sourceCapabilities?.firesTouchEvents === true
	);
}
