/*
 * calendars.test.mjs - the page of calendars: two people make, move and answer entries, and see each other's changes without asking,
 * also those that are made in the cells of the sheet.
 */
import assert from 'node:assert/strict';
import test from 'node:test';
import { waitUntil } from '../lib/processes.mjs';
import { meet } from './page.mjs';
import { brokenRules } from './rules.mjs';

const pictures = process.env.CALENDAR_PICTURES; // a directory
/** Noon of a day of this week, from Monday (0). The browsers of the test are in UTC. */
const today = new Date();
const noon = (index) => new Date(Date.UTC(today.getUTCFullYear(), today.getUTCMonth(), today.getUTCDate() - ((today.getUTCDay() + 6) % 7) + index, 12));
const day = (index) => noon(index).toISOString().slice(0, 10);

test('calendars', { timeout: 420000 }, async (t) => {
	// For the browsers it is noon of the Wednesday, so that neither the day nor the week ends during the test.
	const window = { locale: 'en-GB', timezoneId: 'UTC', now: noon(2) };
	const { gateway, persons: [ann, bob], sql } = await meet(t, { ann: window, bob: window }, { gatewayFlags: { 'default-link-role': 'none' } });
	const people = [ann, bob];
	const step = (name, run) =>
		t.test(name, async () => {
			await run();
			assert.deepEqual(people.flatMap(({ problems }) => problems.splice(0)), []);
		});
	const picture = async ({ page }, name) => pictures && page.screenshot({ path: `${pictures}/${name}.png` });
	const rules = async ({ page }, screen) => assert.deepEqual(await brokenRules(page), [], screen);
	const events = ({ page }, title) => page.locator('.ec-event:not(.ec-ghost, .ec-preview)', { hasText: title });
	/** When the shown events of a title begin, as "2 09:00", from Monday (0). */
	const times = (person, title) =>
		events(person, title).evaluateAll((all) => {
			const shown = (text) => `${(new Date(text).getUTCDay() + 6) % 7} ${text.slice(11, 16)}`;
			return all.map((event) => shown(event.querySelector('time').dateTime)).sort();
		});
	const untilTimes = (person, title, wanted) => {
		let last;
		return waitUntil(async () => JSON.stringify((last = await times(person, title))) === JSON.stringify(wanted), () => `${person.name} sees ${title} at ${wanted}, not at ${last}`);
	};
	const dialog = ({ page }) => page.locator('dialog.entry');
	const fill = async (person, values) => {
		for (const [label, value] of Object.entries(values)) await dialog(person).getByLabel(label, { exact: true }).fill(value);
	};
	const save = (person) => dialog(person).getByRole('button', { name: 'Save', exact: true }).click();
	const closed = (person) => person.page.locator('dialog').first().waitFor({ state: 'detached' });
	const scripts = ({ page }) =>
		page.evaluate(() => performance.getEntriesByType('resource').filter(({ name }) => /\.(js|css)$/.test(name)).map(({ name, encodedBodySize }) => [new URL(name).pathname, encodedBodySize]));
	let id;

	await step('the list of sheets opens the calendars, whose module it has not loaded; a calendar is made', async () => {
		const { page } = ann;
		await page.reload();
		await page.getByRole('link', { name: 'Calendars' }).waitFor();
		const before = await scripts(ann);
		assert.ok(!before.some(([name]) => /assets\/(page|calendar)-/.test(name)), JSON.stringify(before));
		await page.getByRole('link', { name: 'Calendars' }).click();
		await page.getByRole('heading', { name: 'Calendars' }).waitFor();
		await page.getByText('There are no calendars yet.').waitFor();
		const after = (await scripts(ann)).filter(([name]) => !before.some(([other]) => other === name));
		const bytes = after.reduce((sum, [, size]) => sum + size, 0);
		assert.ok(bytes > 20000 && bytes < 110000, `the calendars load ${bytes} bytes: ${JSON.stringify(after)}`);
		await page.getByRole('button', { name: 'New calendar' }).click();
		await page.getByLabel('Name of the calendar').fill('Team');
		await page.getByRole('button', { name: 'Create' }).click();
		await page.getByLabel('Team', { exact: true }).waitFor();
		id = Number(await sql(`SELECT sheet_id FROM sheet.sheet WHERE name = 'Team' AND calendar`));
		await sql(`SELECT sheet.share(${id}, 'bob', 'editor')`);
		await bob.page.goto(`${gateway.url}/?calendar=${id}`);
		await bob.page.getByLabel('Team', { exact: true }).waitFor();
		await rules(bob, 'the page');
	});

	await step('an entry that repeats is added by the form, and the other sees it', async () => {
		const { page } = ann;
		await page.getByRole('button', { name: 'Week', exact: true }).click();
		await page.getByRole('button', { name: 'New entry' }).click();
		await fill(ann, { Title: 'Standup', Start: day(1), 'Start time': '09:00', End: day(1), 'End time': '08:00', Place: 'Room 1' });
		await save(ann);
		await dialog(ann).getByText('The end is before the start.').waitFor();
		await fill(ann, { 'End time': '09:30' });
		await dialog(ann).getByLabel('Repeats', { exact: true }).selectOption('RULE');
		await fill(ann, { Rule: 'FREQ=HOURLY' });
		await save(ann);
		await dialog(ann).getByText('The rule is not accepted').waitFor();
		await dialog(ann).getByLabel('Repeats', { exact: true }).selectOption('DAILY');
		await rules(ann, 'the form');
		await picture(ann, 'form');
		await save(ann);
		await closed(ann);
		const wanted = [1, 2, 3, 4, 5, 6].map((of) => `${of} 09:00`);
		await untilTimes(ann, 'Standup', wanted);
		await untilTimes(bob, 'Standup', wanted);
		assert.equal(await sql(`SELECT sheet.get(${id}, 'A2') || ' ' || sheet.get(${id}, 'D2')`), 'Standup FREQ=DAILY');
	});

	await step('each chooses a colour for the calendar, which stays and is the one of calendar programs', async () => {
		const colours = async ({ page }) => {
			const entry = events({ page }, 'Standup').first();
			await entry.waitFor();
			const shown = await entry.evaluate((element) => [getComputedStyle(element).backgroundColor, getComputedStyle(element).color]);
			return [...shown, await page.getByLabel('Team', { exact: true }).evaluate((input) => getComputedStyle(input).accentColor)].join(' ');
		};
		const [red, yellow] = ['rgb(179, 38, 30) rgb(255, 255, 255) rgb(179, 38, 30)', 'rgb(255, 238, 0) rgb(0, 0, 0) rgb(255, 238, 0)'];
		const until = (person, wanted) => {
			let last;
			return waitUntil(async () => (last = await colours(person)) === wanted, () => `${person.name} sees the calendar in ${wanted}, not in ${last}`);
		};
		const bobs = await colours(bob);
		const more = ann.page.locator('.calendar-list summary');
		await more.click();
		await ann.page.getByLabel('Colour of Team').selectOption('Red');
		await until(ann, red);
		await ann.page.keyboard.press('Escape');
		await ann.page.reload();
		await until(ann, red);
		assert.equal(await sql(`SELECT c.colour FROM sheet.account a, sheet.calendars(a.uid) c WHERE a.name = 'ann'`), '#b3261e');
		assert.equal(await colours(bob), bobs, 'the other has her own');
		await sql(`SELECT sheet.choose_calendar(${id}, '#ffee00', as_uid => a.uid) FROM sheet.account a WHERE a.name = 'ann'`);
		await ann.page.reload();
		await until(ann, yellow);
		await more.click();
		assert.equal(await ann.page.getByLabel('Colour of Team').evaluate((select) => select.selectedOptions[0].text), 'Other: #ffee00');
		await rules(ann, 'a colour of a program');
		await ann.page.getByLabel('Colour of Team').selectOption('Green');
		await until(ann, 'rgb(11, 107, 80) rgb(255, 255, 255) rgb(11, 107, 80)');
		await more.click();
	});

	await step('it is dragged, with those that follow; then one of them alone', async () => {
		const drag = async (person, index, hours, scope) => {
			const box = await events(person, 'Standup').nth(index).boundingBox();
			const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
			const hour = 48; // half an hour is 24 pixels high
			await person.page.mouse.move(x, y);
			await person.page.mouse.down();
			await person.page.mouse.move(x, y + (hour * hours) / 2, { steps: 6 });
			await person.page.mouse.move(x, y + hour * hours, { steps: 6 });
			await person.page.mouse.up();
			await person.page.getByText('The entry repeats.').waitFor();
			await person.page.getByRole('button', { name: scope, exact: true }).click();
		};
		await drag(ann, 2, 2, 'This one and those that follow');
		const half = (from, at) => `${from} ${at}:00`;
		await untilTimes(ann, 'Standup', [half(1, '09'), half(2, '09'), ...[3, 4, 5, 6].map((of) => half(of, 11))]);
		await untilTimes(bob, 'Standup', [half(1, '09'), half(2, '09'), ...[3, 4, 5, 6].map((of) => half(of, 11))]);
		await drag(bob, 0, 1, 'Only this one');
		await untilTimes(ann, 'Standup', [half(1, 10), half(2, '09'), ...[3, 4, 5, 6].map((of) => half(of, 11))]);
		// Nothing happens if the question is not answered.
		await events(ann, 'Standup').first().press('Enter');
		await fill(ann, { Title: 'Meeting' });
		await save(ann);
		await ann.page.getByText('The entry repeats.').waitFor();
		await ann.page.keyboard.press('Escape');
		assert.equal(await dialog(ann).getByLabel('Title').inputValue(), 'Meeting');
		await ann.page.keyboard.press('Escape');
		await ann.page.getByRole('button', { name: 'Discard', exact: true }).click();
		await closed(ann);
		assert.equal(await events(ann, 'Meeting').count(), 0);
	});

	await step('a person is invited by name, and declines; the other sees that', async () => {
		await ann.page.getByRole('button', { name: 'New entry' }).click();
		await fill(ann, { Title: 'Lunch', Start: day(3), 'Start time': '12:00', End: day(3), 'End time': '13:00', People: 'ann, bob' });
		await save(ann);
		await closed(ann);
		await events(bob, 'Lunch').click();
		await dialog(bob).getByRole('button', { name: 'Decline' }).click();
		await bob.page.getByText('You have declined.').waitFor();
		await bob.page.keyboard.press('Escape');
		await bob.page.locator('.ec-event.is-declined').waitFor();
		await events(ann, 'Lunch').click();
		await dialog(ann).locator('.persons [data-answer=declined]', { hasText: 'bob' }).waitFor();
		await ann.page.keyboard.press('Escape');
		await closed(ann);
		// The small month shows that of the Wednesday.
		if (day(2).slice(0, 7) !== day(3).slice(0, 7)) await ann.page.locator('.small-month [data-date=after]').click();
		await ann.page.locator(`.small-month [data-date="${day(3)}"][data-dot]`).waitFor();
	});

	await step('the small month shows that of the day that was chosen, also when the week begins in the month before', async () => {
		const small = ann.page.locator('.small-month');
		const firstShown = () => small.locator('td [data-date]').first().getAttribute('data-date');
		const next = async () => {
			const before = await firstShown();
			await small.locator('[data-date=after]').click();
			await waitUntil(async () => (await firstShown()) !== before, 'the next month');
		};
		await next();
		while (new Date(await firstShown()).getUTCDay() === 1) await next();
		const first = await firstShown();
		await small.locator(`[data-date="${first}"]`).click();
		await ann.page.locator(`.ec-col-head time[datetime="${first}"]`).waitFor();
		assert.equal(await firstShown(), first);
		await ann.page.getByRole('button', { name: 'Today', exact: true }).click();
		await events(ann, 'Lunch').waitFor();
		await small.locator(`[data-date="${day(2)}"]`).waitFor();
	});

	await step('an edit in the grid is seen in the calendar; the sheet leads to it', async () => {
		await bob.page.locator('.calendar-list summary').click();
		await bob.page.getByRole('link', { name: 'Show Team as sheet' }).click();
		await bob.untilOpen();
		assert.ok(!(await scripts(bob)).some(([name]) => /univer/i.test(name)));
		await bob.type('A3', 'Daily');
		await bob.untilSaved();
		await waitUntil(async () => (await events(ann, 'Daily').count()) === 4, 'ann to see the new title');
		await bob.page.locator('button.more').click();
		await bob.page.getByRole('button', { name: 'Show as calendar' }).click();
		await waitUntil(async () => (await events(bob, 'Daily').count()) === 4, 'bob to see it');
	});

	await step('without a connection the page says so, and the form keeps what was typed', async () => {
		await events(ann, 'Lunch').click();
		await fill(ann, { Title: 'Long lunch' });
		await ann.context.setOffline(true);
		await save(ann);
		await dialog(ann).getByRole('alert').filter({ hasText: 'No gateway answers' }).waitFor();
		await ann.context.setOffline(false);
		assert.equal(await dialog(ann).getByLabel('Title').inputValue(), 'Long lunch');
		await save(ann);
		await closed(ann);
		await events(bob, 'Long lunch').waitFor();
	});

	await step('Escape asks before it discards what was typed; what another has changed meanwhile is not replaced unasked', async () => {
		const { page } = ann;
		const titleOf = () => dialog(ann).getByLabel('Title', { exact: true }).inputValue();
		await events(ann, 'Long lunch').click();
		await fill(ann, { Title: 'Picnic', Notes: 'Bring plates' });
		await page.keyboard.press('Escape');
		await page.getByText('Discard it?').waitFor();
		await page.keyboard.press('Escape');
		await page.getByText('Discard it?').waitFor({ state: 'detached' });
		assert.equal(await titleOf(), 'Picnic');
		await sql(`SELECT sheet.change_task(${id}, t.task_uid, '{"Title": "Brunch"}') FROM sheet.tasks(${id}) t WHERE t.title = 'Long lunch'`);
		await save(ann);
		await dialog(ann).getByRole('alert').filter({ hasText: 'Title: Brunch' }).waitFor();
		await picture(ann, 'changed');
		assert.equal(await titleOf(), 'Picnic');
		assert.equal(await sql(`SELECT cells->>'notes' FROM sheet.tasks(${id}) WHERE title = 'Brunch'`), '');
		await save(ann);
		await closed(ann);
		await events(bob, 'Picnic').waitFor();
		await events(ann, 'Picnic').click();
		await fill(ann, { Title: 'Nothing' });
		await dialog(ann).getByRole('button', { name: 'Close', exact: true }).click();
		await page.getByRole('button', { name: 'Discard', exact: true }).click();
		await closed(ann);
		await events(ann, 'Picnic').click();
		assert.equal(await titleOf(), 'Picnic');
		await page.keyboard.press('Escape'); // nothing was typed
		await closed(ann);
	});

	await step('all views, in both themes and at the width of a phone, follow the rules of accessibility', async () => {
		const { page } = ann;
		const broken = [];
		for (const view of ['Month', 'Agenda', 'Day', 'Week']) {
			await page.getByRole('button', { name: view, exact: true }).click();
			await page.locator('.calendar-tools [aria-pressed=true]', { hasText: view }).waitFor();
			await picture(ann, view.toLowerCase());
			broken.push(...(await brokenRules(page)).map((rule) => `${view}: ${rule}`));
		}
		await page.getByRole('button', { name: 'Dark' }).click();
		await picture(ann, 'dark');
		broken.push(...(await brokenRules(page)).map((rule) => `dark: ${rule}`));
		await page.setViewportSize({ width: 390, height: 760 });
		await page.reload();
		await events(ann, 'Picnic').waitFor();
		await page.getByRole('button', { name: 'Agenda', exact: true }).click();
		await picture(ann, 'phone');
		broken.push(...(await brokenRules(page)).map((rule) => `phone: ${rule}`));
		assert.deepEqual(broken, []);
		assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), 'nothing is beside the window');
	});
});
