// chips.ts - the items of lists in cells as chips, in the columns that have a separator of their own (property `list`). Loaded when
// a sheet has such a column.
//
// A cell keeps its content, its editor and its text for others; only its drawing is another one.
import { InterceptorEffectEnum, type ICellData, type ICellRenderContext, type IStyleData, type Nullable } from '@univerjs/core';
import { IRenderManagerService } from '@univerjs/engine-render';
import { INTERCEPTOR_POINT, SheetInterceptorService } from '@univerjs/sheets';
import type { GridParts } from '../view/parts';
import { fitting, itemsOf } from './items';

const [gap, padding, margin] = [4, 6, 3];
const [background, border, colour] = ['#e6eeea', '#b4c4bc', '#1c2421'];
const [top, middle] = [1, 2];

function draw(ctx: CanvasRenderingContext2D, items: string[], { primaryWithCoord: at }: ICellRenderContext, style: Nullable<IStyleData>): void {
	const { startX, startY, endX, endY } = at.isMergedMainCell ? at.mergeInfo : at;
	const points = style?.fs ?? 11;
	const height = Math.min(points * 1.8, endY - startY - 2);
	const free = endY - startY - height;
	const y = startY + (style?.vt === top ? 1 : style?.vt === middle ? free / 2 : free - 1);
	ctx.save();
	ctx.beginPath();
	ctx.rect(startX, startY, endX - startX, endY - startY);
	ctx.clip();
	ctx.font = `${style?.it ? 'italic ' : ''}${style?.bl ? 'bold ' : ''}${points}pt ${style?.ff ?? 'Arial'}`;
	ctx.textBaseline = 'middle';
	ctx.textAlign = 'left';
	const widthOf = (text: string) => ctx.measureText(text).width + 2 * padding;
	const widths = items.map(widthOf);
	const count = fitting(widths, endX - startX - 2 * margin, gap, (left) => widthOf(`+${left}`));
	let x = startX + margin;
	const chip = (text: string, width: number) => {
		ctx.beginPath();
		ctx.roundRect(x, y, width, height, height / 2);
		ctx.fillStyle = background;
		ctx.fill();
		ctx.strokeStyle = border;
		ctx.stroke();
		ctx.fillStyle = style?.cl?.rgb ?? colour;
		ctx.fillText(text, x + padding, y + height / 2 + 1);
		x += width + gap;
	};
	items.slice(0, count).forEach((item, i) => chip(item, widths[i]!));
	if (count < items.length) chip(`+${items.length - count}`, widthOf(`+${items.length - count}`));
	ctx.restore();
}

/** The items that a cell shows as chips; none: it is no list. */
function listed(cell: Nullable<ICellData>, separator: string): string[] {
	if (typeof cell?.v !== 'string' || cell.f || cell.si || cell.p) return [];
	return itemsOf(cell.v, separator).filter((item) => item !== '');
}

export class Chips {
	private separators = new Map<number, string>();

	constructor(private readonly parts: Pick<GridParts, 'injector' | 'sheet'>) {
		const { injector } = parts;
		injector.get(SheetInterceptorService).intercept(INTERCEPTOR_POINT.CELL_CONTENT, {
			effect: InterceptorEffectEnum.Style,
			handler: (cell, { col }, next) => {
				const separator = this.separators.get(col);
				const items = separator === undefined ? [] : listed(cell, separator);
				if (items.length === 0) return next(cell);
				const chips = { drawWith: (ctx: CanvasRenderingContext2D, info: ICellRenderContext) => draw(ctx, items, info, info.style) };
				return next({ ...cell, customRender: [...(cell?.customRender ?? []), chips], fontRenderExtension: { ...cell?.fontRenderExtension, isSkip: true } });
			},
		});
	}

	/** Draws chips in these columns, whose separators are given, and in no others. */
	show(separators: Map<number, string>): void {
		this.separators = separators;
		const { injector, sheet } = this.parts;
		injector.get(IRenderManagerService).getRenderById(sheet.getUnitId())?.mainComponent?.makeForceDirty();
	}
}
