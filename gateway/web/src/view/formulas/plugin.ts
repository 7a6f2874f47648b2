// plugin.ts - Univer's plugin for formulas in sheets, without its calculation: the worker does that (computing.ts).
import { Injector } from '@univerjs/core';
import { TriggerCalculationController, UniverSheetsFormulaPlugin } from '@univerjs/sheets-formula';
import { BehaviorSubject } from 'rxjs';

/** What Univer's bar of progress gets: nothing is to be shown. */
const idle = { progress$: new BehaviorSubject({ done: 0, count: 0 }), clearProgress() {}, dispose() {} };

export class SheetsFormula extends UniverSheetsFormulaPlugin {
	override onStarting(): void {
		super.onStarting();
		const { _injector: injector } = this as unknown as { _injector: Injector };
		injector.replace([TriggerCalculationController, { useValue: idle as never }]);
	}
}
