// texts.ts - Univer's texts in the language of the page. Those that describe functions are most of them. They are read when
// the user first turns to the grid.
import { LocaleService, LocaleType } from '@univerjs/core';

export interface GridTexts {
	locale: LocaleType;
	texts: object;
	/** The texts that describe functions. */
	readFunctions: () => Promise<object>;
}

export async function readTexts(language: string): Promise<GridTexts> {
	if (language === 'zh-CN') {
		const { default: texts } = await import('@univerjs/preset-sheets-core/locales/zh-CN');
		return { locale: LocaleType.ZH_CN, texts, readFunctions: async () => (await import('@univerjs/sheets-formula/locale/zh-CN')).default };
	}
	const { default: texts } = await import('@univerjs/preset-sheets-core/locales/en-US');
	// The first tab of the toolbar has the name that other spreadsheets give it.
	const { ui } = texts as unknown as { ui: { ribbon: object } };
	return {
		locale: LocaleType.EN_US,
		texts: { ...texts, ui: { ...ui, ribbon: { ...ui.ribbon, start: 'Home' } } },
		readFunctions: async () => (await import('@univerjs/sheets-formula/locale/en-US')).default,
	};
}

/**
 * Adds the texts that describe functions at the first key or click in the element; while no gateway gives them, at a
 * later one. Returns a function that stops it.
 */
export function readFunctionTexts(element: HTMLElement, { locale, readFunctions }: GridTexts, service: LocaleService): () => void {
	const listening = new AbortController();
	const { signal } = listening;
	let reading = false;
	const read = async () => {
		if (reading) return;
		reading = true;
		const texts = await readFunctions().catch(() => null);
		reading = false;
		if (!texts || signal.aborted) return;
		listening.abort();
		service.load({ [locale]: texts } as never);
		service.setLocale(locale);
	};
	for (const event of ['pointerdown', 'keydown']) element.addEventListener(event, () => void read(), { signal, capture: true });
	return () => listening.abort();
}
