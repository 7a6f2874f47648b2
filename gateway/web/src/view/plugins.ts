// plugins.ts - the plugins of Univer that the grid needs: those of preset-sheets-core without its facades, its network and
// its remote worker, which nobody here uses.
import { UniverDocsPlugin } from '@univerjs/docs';
import { UniverDocsUIPlugin } from '@univerjs/docs-ui';
import { UniverFormulaEnginePlugin } from '@univerjs/engine-formula';
import { UniverRenderEnginePlugin } from '@univerjs/engine-render';
import { UniverSheetsPlugin } from '@univerjs/sheets';
import { UniverSheetsFormulaUIPlugin } from '@univerjs/sheets-formula-ui';
import { UniverSheetsNumfmtPlugin } from '@univerjs/sheets-numfmt';
import { UniverSheetsNumfmtUIPlugin } from '@univerjs/sheets-numfmt-ui';
import { UniverSheetsUIPlugin } from '@univerjs/sheets-ui';
import { UniverUIPlugin } from '@univerjs/ui';
import '@univerjs/sheets/lib/facade';
import '@univerjs/sheets-ui/lib/facade';
import { SheetsFormula } from './formulas/plugin';
import { hiddenMenus } from './input/blocked';

export function pluginsOf(container: HTMLElement): [plugin: unknown, options?: object][] {
	return [
		[UniverDocsPlugin],
		[UniverRenderEnginePlugin],
		[UniverUIPlugin, { container, header: true, menu: hiddenMenus() }],
		[UniverDocsUIPlugin],
		// The worker computes (view/formulas/computing.ts).
		[UniverFormulaEnginePlugin, { notExecuteFormula: true }],
		[UniverSheetsPlugin],
		[UniverSheetsUIPlugin, { footer: false, disableForceStringAlert: true, disableForceStringMark: true, protectedRangeShadow: true }],
		[UniverSheetsNumfmtPlugin, { disableTextFormatAlert: true, disableTextFormatMark: true }],
		[UniverSheetsNumfmtUIPlugin],
		[SheetsFormula, { initialFormulaComputing: 0 }],
		[UniverSheetsFormulaUIPlugin],
	];
}
