/*
 * rules.mjs - rules of accessibility that a screen of the page must follow. axe-core, the usual engine, has a licence that
 * this project does not accept (MPL). Names and roles are those that Chromium computes for screen readers.
 */

/** What breaks a rule on the screen that a page shows: one line each. */
export async function brokenRules(page) {
	return [...(await unnamedControls(page)), ...(await page.evaluate(brokenInDocument))];
}

const controls = new Set(['button', 'link', 'textbox', 'searchbox', 'combobox', 'checkbox', 'radio', 'switch', 'slider', 'spinbutton', 'tab', 'menuitem', 'option', 'application', 'dialog', 'region', 'img', 'image']);

/** Controls, regions and images without a name. */
async function unnamedControls(page) {
	const session = await page.context().newCDPSession(page);
	const { nodes } = await session.send('Accessibility.getFullAXTree');
	const broken = [];
	for (const { ignored, role, name, backendDOMNodeId } of nodes) {
		if (ignored || !controls.has(role?.value) || name?.value?.trim()) continue;
		const { object } = await session.send('DOM.resolveNode', { backendNodeId: backendDOMNodeId });
		const { result } = await session.send('Runtime.callFunctionOn', { objectId: object.objectId, functionDeclaration: 'function () { return this.outerHTML?.slice(0, 160); }', returnByValue: true });
		broken.push(`no name: ${role.value} ${result.value}`);
	}
	await session.detach();
	return broken;
}

/** Runs in the page. */
function brokenInDocument() {
	const broken = [];
	const show = (element) => element.outerHTML.slice(0, 160);
	const shown = (element) => element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && element.getClientRects().length > 0;
	const all = [...document.querySelectorAll('body *')];

	if (!['en', 'zh-CN'].includes(document.documentElement.lang)) broken.push(`lang of the document: ${document.documentElement.lang}`);
	if (!document.title.trim()) broken.push('no title');
	for (const language of document.querySelectorAll('[lang]')) if (!/^[a-z]{2}(-[A-Z]{2})?$/.test(language.lang)) broken.push(`lang: ${show(language)}`);

	const ids = new Map();
	for (const element of document.querySelectorAll('[id]')) ids.set(element.id, (ids.get(element.id) ?? 0) + 1);
	for (const [id, count] of ids) if (count > 1) broken.push(`${count} elements have the id ${id}`);
	for (const name of ['aria-labelledby', 'aria-describedby', 'aria-controls', 'for']) {
		for (const element of document.querySelectorAll(`[${name}]`)) {
			for (const id of element.getAttribute(name).split(/\s+/)) if (!ids.has(id) && element.ariaExpanded !== 'false') broken.push(`${name} refers to nothing: ${show(element)}`);
		}
	}

	const headings = all.filter((element) => /^H[1-6]$/.test(element.tagName) && shown(element));
	if (headings.filter(({ tagName }) => tagName === 'H1').length !== 1) broken.push(`${headings.filter(({ tagName }) => tagName === 'H1').length} headings of level 1`);
	let level = 0;
	for (const heading of headings) {
		if (Number(heading.tagName[1]) > level + 1) broken.push(`heading after level ${level}: ${show(heading)}`);
		level = Number(heading.tagName[1]);
	}
	if (document.querySelectorAll('main').length !== 1) broken.push('not one main landmark');

	for (const element of all) {
		const role = element.getAttribute('role');
		if (element.tabIndex > 0) broken.push(`positive tabindex: ${show(element)}`);
		if (element.hasAttribute('aria-label') && !role && ['DIV', 'SPAN', 'P'].includes(element.tagName)) broken.push(`aria-label without a role: ${show(element)}`);
		if (element.matches('[aria-hidden="true"] *, [aria-hidden="true"]') && element.tabIndex >= 0 && shown(element)) broken.push(`hidden from screen readers, but takes the focus: ${show(element)}`);
		if ((element.matches('ul, ol') && !role && [...element.children].some(({ tagName }) => tagName !== 'LI')) || (element.tagName === 'LI' && !element.closest('ul, ol'))) broken.push(`list: ${show(element)}`);
		if (element.matches('button, a[href], [role="button"]') && element.querySelector('button, a[href], input, select')) broken.push(`a control within a control: ${show(element)}`);
		// WCAG 2.2, 2.5.8: a target is 24 by 24 pixels, or has as much room around it; links in text are exempt.
		if (element.matches('button, input, select') && shown(element) && !element.closest('.grid, .visually-hidden')) {
			const { width, height } = element.getBoundingClientRect();
			if (width < 24 || height < 24) broken.push(`a target of ${width} x ${height} pixels: ${show(element)}`);
		}
	}

	// Contrast of text to the colours behind it: 4.5, or 3 if it is large.
	const parse = (colour) => {
		const numbers = colour.match(/[\d.]+%?/g)?.map(Number) ?? [0, 0, 0, 0];
		const scaled = colour.startsWith('color(') ? [numbers[0] * 255, numbers[1] * 255, numbers[2] * 255, numbers[3]] : numbers;
		return { rgb: scaled.slice(0, 3), alpha: scaled[3] ?? 1 };
	};
	const over = (top, ground) => top.rgb.map((part, i) => part * top.alpha + ground[i] * (1 - top.alpha));
	const ground = (element) => {
		const layers = [];
		for (let at = element; at; at = at.parentElement) {
			const style = getComputedStyle(at);
			if (style.backgroundImage !== 'none' && at === element) return null;
			layers.push(parse(style.backgroundColor));
			if (layers.at(-1).alpha === 1) break;
		}
		return layers.reverse().reduce((below, layer) => over(layer, below), document.documentElement.dataset.theme === 'dark' ? [0, 0, 0] : [255, 255, 255]);
	};
	const luminance = (rgb) => {
		const [r, g, b] = rgb.map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	// Colours that are changing are none that anybody sees: as those of a toolbar that is being disabled.
	const changing = document.getAnimations().flatMap((animation) => (animation instanceof CSSTransition ? [animation.effect.target] : []));
	for (const element of all) {
		const hasText = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
		const isField = element.matches('input:not([type="hidden"]), select') && (element.value || element.placeholder);
		// What is inert is covered, and Univer greys it out some time after the role has ended.
		if ((!hasText && !isField) || !shown(element) || element.closest('.visually-hidden, [inert], [disabled], [aria-disabled="true"], canvas, noscript, option')) continue;
		// A modal dialog dims what is behind it.
		const dialog = document.querySelector('dialog[open]');
		if (dialog && !dialog.contains(element)) continue;
		const behind = ground(element);
		if (!behind || changing.some((target) => target.contains(element))) continue;
		const style = getComputedStyle(element, element.matches('input') && !element.value ? '::placeholder' : null);
		const [a, b] = [luminance(over(parse(style.color), behind)), luminance(behind)].sort((x, y) => y - x);
		const contrast = (a + 0.05) / (b + 0.05);
		const size = parseFloat(style.fontSize);
		const least = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5;
		if (contrast < least - 0.01) broken.push(`contrast ${contrast.toFixed(2)} (${style.color} on rgb(${behind.map(Math.round)})): ${show(element)}`);
	}
	return broken;
}

/** The controls that Tab reaches and that do not show the focus. Ends where the focus leaves `within`. */
export async function invisibleFocus(page, within) {
	const invisible = [];
	await page.evaluate(() => {
		document.body.tabIndex = -1;
		document.body.focus();
		document.body.removeAttribute('tabindex');
	});
	for (let i = 0; i < 60; i++) {
		await page.keyboard.press('Tab');
		const state = await page.evaluate((selector) => {
			const focused = document.activeElement;
			if (!focused || focused === document.body || !focused.closest(selector) || focused.isContentEditable) return null;
			const again = focused.hasAttribute('data-tabbed');
			focused.setAttribute('data-tabbed', '');
			const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(focused);
			return { again, html: focused.outerHTML.slice(0, 160), visible: (outlineStyle !== 'none' && parseFloat(outlineWidth) >= 1) || boxShadow !== 'none' };
		}, within);
		if (!state || state.again) return { reached: i, invisible };
		if (!state.visible) invisible.push(state.html);
	}
	return { reached: 60, invisible };
}
