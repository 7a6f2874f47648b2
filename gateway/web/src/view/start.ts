// start.ts - a sheet that has just been opened takes keys and drags, and shows its first cell in the formula bar, as after a click.
import { DOCS_NORMAL_EDITOR_UNIT_ID_KEY, IUniverInstanceService } from '@univerjs/core';
import { IRenderManagerService } from '@univerjs/engine-render';
import { SheetsSelectionsService } from '@univerjs/sheets';
import { AutoFillUIController } from '@univerjs/sheets-ui';
import { canvasOf, type GridParts } from './parts';

/** Waits for the editor of cells, which Univer gives the keys to. The user may be elsewhere; a screen keyboard stays hidden. */
export function addStart({ host, injector, commands, sheet }: GridParts): () => void {
	const start = () => {
		const canvas = canvasOf(host);
		if (!canvas || document.activeElement !== document.body || matchMedia('(pointer: coarse)').matches) return;
		const [unitId, subUnitId] = [sheet.getUnitId(), sheet.getSheetId()];
		injector.get(IUniverInstanceService).focusUnit(unitId);
		canvas.focus();
		const selections = [...injector.get(SheetsSelectionsService).getCurrentSelections()];
		commands.syncExecuteCommand('sheet.operation.set-selections', { unitId, subUnitId, selections }, { fromCollab: true });
	};
	let frame = 0;
	const made = injector.get(IRenderManagerService).created$.subscribe(({ unitId }) => {
		if (unitId !== DOCS_NORMAL_EDITOR_UNIT_ID_KEY) return;
		frame = requestAnimationFrame(() => {
			injector.get(AutoFillUIController); // which Univer makes three seconds later: until then, a drag that fills would do nothing
			start();
			host.dataset.ready = ''; // for tests: from now on the grid takes keys
		});
	});
	return () => {
		cancelAnimationFrame(frame);
		made.unsubscribe();
	};
}
