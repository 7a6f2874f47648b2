// univer.ts - what the build changes in Univer's sources: work that the page does not need. A part that is not there any more,
// after an update of Univer, ends the build.

interface Change {
	part: string | RegExp;
	by: string;
}

/** An offset of a canvas that is computed when it is used. */
const whereCanvasIs = 'getCanvasOffsetByEngine(engine)';
const hiddenButtons = 'combineLatest(hiddenObservableMap).pipe(startWith$1(new Array(hiddenObservableMap.length).fill(false))';

/** Where rows and the borders around them are drawn, and all rows that are there: neighbours may be hidden or narrow. */
const areasOf = `function areasOf(rows, heights, scale) {
	const margin = 3 / Math.min(1, scale); // borders are as thick when the grid is small
	return [...rows].filter((row) => row < heights.length).map((row) => {
		const [top, end] = [(heights[row - 1] ?? 0) - margin, heights[row] + margin];
		let [startRow, endRow] = [row, row];
		while (startRow > 0 && heights[startRow - 1] >= top) startRow--;
		while (endRow < heights.length - 1 && heights[endRow] <= end) endRow++;
		return { top, end, startRow, endRow };
	});
}
function rangesOf(areas, { startRow, endRow, ...columns }) {
	const ranges = areas.map((area) => ({ ...columns, startRow: Math.max(startRow, area.startRow), endRow: Math.min(endRow, area.endRow) }));
	return ranges.filter((range) => range.startRow <= range.endRow);
}
`;

/** Draws these areas again, as Univer draws what scrolling uncovers. */
const refreshAreas = `refreshAreas(viewportInfo, { cacheCtx, mainCtx, leftOrigin, topOrigin, bufferEdgeX, bufferEdgeY }) {
	const { rowHeaderWidthAndMarginLeft, columnHeaderHeightAndMarginTop } = this.getSkeleton();
	const { left, right, top, bottom } = viewportInfo.cacheBound;
	const m = mainCtx.getTransform();
	cacheCtx.save();
	cacheCtx.setTransform(m.a, m.b, m.c, m.d, 0, 0);
	cacheCtx.translateWithPrecision(m.e / m.a - leftOrigin + bufferEdgeX, m.f / m.d - topOrigin + bufferEdgeY);
	this._refreshIncrementalState = true;
	for (const area of viewportInfo.areas) {
		const bounds = { left, right, top: columnHeaderHeightAndMarginTop + area.top, bottom: columnHeaderHeightAndMarginTop + area.end };
		if (bounds.bottom < top || bounds.top > bottom) continue;
		const rectangle = [left - rowHeaderWidthAndMarginLeft, area.top, right - left, area.end - area.top];
		cacheCtx.clearRectByPrecision(...rectangle);
		cacheCtx.save();
		cacheCtx.beginPath();
		cacheCtx.rectByPrecision(...rectangle);
		cacheCtx.closePath();
		cacheCtx.clip();
		this.draw(cacheCtx, { ...viewportInfo, diffBounds: [bounds] });
		cacheCtx.restore();
	}
	this._refreshIncrementalState = false;
	cacheCtx.restore();
}
`;

const changes: Record<string, Change[]> = {
	'/@univerjs/core/lib/es/index.js': [
		// The limit of INDIRECT() and OFFSET(), and of pasted rows.
		{ part: 'const MAX_ROW_COUNT = 1048576;', by: 'const MAX_ROW_COUNT = 16777216;' },
		// Univer leaves the ports of a channel open, which would keep each grid that was shown in memory.
		{ part: 'if (!cancelled) callback();', by: 'channel.port1.close();\n\t\tif (!cancelled) callback();' },
	],
	'/engine-render/lib/es/index.js': [
		// Univer asks whether something is to be drawn in each frame of the screen, for ever, once for each of its canvases. Here it
		// asks from when a layer has become dirty until a frame has passed in which none is, after the first 300 frames: a sheet
		// that is being opened draws sooner if the browser makes frames all the time.
		{
			part: 'if (this._renderFrameTasks.length > 0) this._requestNewFrameHandler =',
			by: 'if (this._renderFrameTasks.length > 0 && this.framesLeft-- > 0) this._requestNewFrameHandler =',
		},
		{ part: '_beginFrame(_timestamp) {', by: '_beginFrame(_timestamp) { if (this.framesLeft === 1) this.framesLeft = 0;' },
		{ part: 'startRenderLoop() {', by: 'startRenderLoop() { this.framesLeft = Math.max(this.framesLeft ?? 300, 1);' },
		{
			part: 'makeDirty(state = true) {\n\t\tthis._dirty = state;\n\t\t/**',
			by: `makeDirty(state = true) {
				this._dirty = state;
				const engine = state && this.scene.getEngine();
				if (engine && engine._renderFrameTasks.length > 0) engine.startRenderLoop();
				/**`,
		},
		// Univer draws all visible cells when one of them has changed. See onlyRows below.
		{ part: 'if (state === false) this._dirtyBounds = [];', by: 'if (state === false) this._dirtyBounds = []; this.onlyRows = undefined;' },
		// renderByViewports() draws all cells of a dirty spreadsheet. Its viewports are clean nevertheless if a frame has drawn
		// another layer since it became dirty. If the grid is then scrolled, Univer prepares only the cells that scrolling uncovers,
		// and draws the others without texts and colours.
		{
			part: 'spreadsheetSkeleton.setStylesCache(viewportInfo);',
			by: `const { diffX, diffY, isForceDirty } = viewportInfo;
				if (isForceDirty || this.isForceDirty() || diffX !== 0 || diffY !== 0 || spreadsheetSkeleton.worksheet.getMergeData().length) this.onlyRows = undefined;
				if (this.onlyRows) viewportInfo = { ...viewportInfo, areas: areasOf(this.onlyRows, spreadsheetSkeleton.rowHeightAccumulation, mainCtx.getTransform().d) };
				spreadsheetSkeleton.setStylesCache(this.isDirty() ? { ...viewportInfo, isDirty: 1 } : viewportInfo);`,
		},
		{ part: 'const styleRanges = ', by: 'const styleRanges = vpInfo?.areas ? rangesOf(vpInfo.areas, rowColumnSegment) : ' },
		{
			part: 'refreshCacheCanvas(viewportInfo, param) {',
			by: `${refreshAreas} refreshCacheCanvas(viewportInfo, param) { if (viewportInfo.areas) return this.refreshAreas(viewportInfo, param);`,
		},
		{ part: 'var Spreadsheet = ', by: `${areasOf} var Spreadsheet = ` },
	],
	'/sheets-ui/lib/es/index.js': [
		// Edits by others change rows that are known, unless something else has changed since the last frame.
		{
			part: 'if (spreadsheet) spreadsheet.makeDirty();',
			by: `const rows = spreadsheet && options?.onlyRows && (spreadsheet.isDirty() ? spreadsheet.onlyRows : new Set());
				if (spreadsheet) spreadsheet.makeDirty();
				if (rows) for (const row of Object.keys(command.params.cellValue)) rows.add(Number(row));
				if (rows && rows.size <= 8) spreadsheet.onlyRows = rows;`,
		},
		// Univer parses each text that it draws, to mark those that look like numbers, even if it is told not to mark them.
		{ part: 'const FORCE_STRING_MARK = ', by: 'return; const FORCE_STRING_MARK = ' },
		// Numbers in a formula stay as they were typed. Univer shortens them, and then writes the texts behind them at wrong places.
		{ part: '} else if (typeof parsedValue.v === "number" && (parsedValue.z === void 0 ||', by: '} else if (false && (' },
		// A number format that follows from the formula (view/formulas/values.ts) is not pasted with it.
		{
			part: 'if (style && Object.keys(style).length > 0) newValue.s = style;',
			by: `if (style && Object.keys(style).length > 0) newValue.s = style;
				if (style?.n && style.n.pattern === cellData?.custom?.derivedFormat) {
					newValue.s = { ...style };
					delete newValue.s.n;
				}`,
		},
		// Univer asks where the canvas is whenever a cell is selected, which makes the browser compute the page's layout. Only an
		// editor that opens needs it.
		{
			part: /(?<=const canvasOffset = )getCanvasOffsetByEngine\(engine\)/g,
			by: `{ get left() { return ${whereCanvasIs}.left; }, get top() { return ${whereCanvasIs}.top; } }`,
		},
	],
	'/@univerjs/sheets/lib/es/index.js': [
		// Univer looks at each cell that a typed formula refers to for a protection. The sheets have none.
		{ part: '_permissionCheckWithFormula(params) {', by: '_permissionCheckWithFormula(params) { return true;' },
		// Series of times and dates go on to the microsecond. Univer rounds to 0.00001 of a day.
		{ part: 'return Math.round((a + b * x) * 1e5) / 1e5;', by: 'return Number((a + b * x).toPrecision(14));' },
		// A cell that is filled with a formula has the mark of a format that follows from it (view/formulas/values.ts), too.
		{ part: 'function removeCellCustom(cell) {', by: 'function removeCellCustom(cell) { return;' },
	],
	'/sheets-formula-ui/lib/es/index.js': [
		// Univer frames the references of a formula that is typed, row by row, also those behind the grid.
		{
			part: 'const range = setEndForRange(rawRange, worksheet.getRowCount(), worksheet.getColumnCount());',
			by: `const range = setEndForRange(rawRange, worksheet.getRowCount(), worksheet.getColumnCount());
				const [lastRow, lastColumn] = [worksheet.getRowCount() - 1, worksheet.getColumnCount() - 1];
				if (range.startRow > lastRow || range.startColumn > lastColumn) continue;
				Object.assign(range, { endRow: Math.min(range.endRow, lastRow), endColumn: Math.min(range.endColumn, lastColumn) });`,
		},
		// Univer colours a formula some time after it has changed, by a text that has the colours. Letters that were typed meanwhile
		// would be gone, and with the cursor behind them all that follow. The next text is coloured.
		{
			part: 'if (!editorRef.current) return;',
			by: `if (!editorRef.current) return;
				if (!isNeedResetSelection && text !== BuildTextUtils.transform.getPlainText(editorRef.current.getDocumentData().body.dataStream)) return;`,
		},
		// The list of functions stays for 300 ms after a key, and would take Enter and Tab, for a name that is no longer being typed.
		{ part: 'setSearchText(token);', by: 'stateRef.listed = editor.getDocumentData().body.dataStream; setSearchText(token);' },
		{ part: 'handlerFormulaReplace,\n', by: 'handlerFormulaReplace, isPresent: () => stateRef.listed === editor.getDocumentData().body.dataStream,\n' },
		{ part: 'reset: resetFormulaSearch }', by: 'reset: resetFormulaSearch, isPresent }' },
		{
			part: /(?<=id: operationId,\s+binding: keyCode,\s+preconditions: \(\) => )true(?=,\s+priority: 1e3)/,
			by: '(keyCode !== KeyCode.ENTER && keyCode !== KeyCode.TAB) || isPresent()',
		},
	],
	'/docs-ui/lib/es/index.js': [
		// Univer moves the hidden input to the text cursor, for input methods, nine times for each typed cell, and each time the
		// browser computes the layout. Once a frame is enough. The input gets the focus at once.
		{
			part: '_updateInputPosition(forceFocus = false) {',
			by: `_updateInputPosition(forceFocus = false) {
				this._ensureHostContainer();
				if ((this.canFocusing || forceFocus || !this._getActiveRangeInstance()?.getAnchor()?.visible) && !this.hasFocus()) this.focus();
				this._placing ??= requestAnimationFrame(() => {
					this._placing = undefined;
					this._placeInput();
				});
			}
			_placeInput() {`,
		},
		{ part: /(?<=this\.activeViewPort == null\) \{\s*)this\.focus\(\);(?=\s*return;)/, by: '' },
		{ part: 'this.activate(canvasLeft, canvasTop, forceFocus)', by: 'this.activate(canvasLeft, canvasTop)' },
	],
	'/@univerjs/ui/lib/es/index.js': [
		// Univer waits 300 ms before it draws the grid for the first time.
		{ part: /(?<=STEADY_TIMEOUT\);\s*\}, )300\)/, by: '0)' },
		// Univer makes the toolbar anew whenever a button tells that it is still hidden or shown: five times for each typed cell.
		{ part: hiddenButtons, by: `${hiddenButtons}, distinctUntilChanged((before, after) => after.every((hidden, i) => hidden === before[i]))` },
		// Univer disables most buttons while a cell is edited. With short texts they would only flicker.
		{
			part: 'disabled$.subscribe((disabled) => setDisabled(disabled))',
			by: 'disabled$.pipe(switchMap((disabled, n) => disabled && n > 0 ? waits(300).pipe(map(() => true)) : of(disabled))).subscribe(setDisabled)',
		},
		{ part: 'animationFrameScheduler, ', by: 'animationFrameScheduler, timer as waits, ' },
	],
};

/** The source of a module of Univer, as the page has it; null: it is not one. */
export function changedUniver(code: string, id: string): string | null {
	if (!id.includes('/@univerjs/')) return null;
	// The pictures of panels that the page does not open: protected ranges, lists of documents.
	let changed = code.replace(/data:image\/\w+;base64,[\w+/=]{2000,}/g, 'data:,');
	// Univer is compiled to a call for each field of each object. That is most of the time of a formula, which makes an object for
	// each cell that it reads.
	if (id.endsWith('/engine-formula/lib/es/index.js')) {
		const before = changed;
		changed = before.replace(/^(\s*)_defineProperty\(this, "(_\w+)", (.*)\);$/gm, '$1this.$2 = $3;');
		if (changed === before) throw new Error('Univer has changed: no fields of formulas');
	}
	for (const { part, by } of Object.entries(changes).flatMap(([file, of]) => (id.endsWith(file) ? of : []))) {
		const before = changed;
		changed = before.replace(part, () => by);
		if (changed === before) throw new Error(`Univer has changed: no "${part}"`);
	}
	return changed;
}
