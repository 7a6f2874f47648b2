"""Makes and reads workbooks for the tests, by openpyxl.

make FILE [big ROWS COLUMNS]: a workbook with all that is carried (or many cells)
tables FILE: a workbook with tables and names, and formulas that use them
read FILE: prints it as JSON, cell by cell
"""
import datetime
import io
import json
import sys
import zipfile

import openpyxl
from openpyxl.comments import Comment
from openpyxl.formatting.rule import CellIsRule, ColorScaleRule, FormulaRule
from openpyxl.styles import Alignment, Border, Color, Font, PatternFill, Side
from openpyxl.utils.datetime import CALENDAR_MAC_1904
from openpyxl.workbook.defined_name import DefinedName
from openpyxl.worksheet.datavalidation import DataValidation
from openpyxl.worksheet.filters import FilterColumn, Filters
from openpyxl.worksheet.table import Table, TableStyleInfo

try:
    from openpyxl.worksheet.formula import ArrayFormula
except ImportError:  # before 3.1
    ArrayFormula = None


def array(sheet, place, ref, formula):
    if ArrayFormula:
        sheet[place] = ArrayFormula(ref, formula)
    else:
        sheet[place] = formula
        sheet.formula_attributes[place] = {'t': 'array', 'ref': ref}


def values(sheet):
    texts = ['text', '007', '1e5', '=1+1', 'TRUE', '2024-01-31', '10:30', "'quoted", "''", ' spaces ', 'two\nlines', 'a & <b> "c"', 'Größe 表 🙂', '#N/A?', 'x' * 32767]
    for row, text in enumerate(texts, 1):
        sheet.cell(row, 1, text).data_type = 's'
    numbers = [0, 1, -1.5, 0.1, 1e300, 5e-324, 123456789012345, 1 / 3, 2**53, True, False]
    for row, number in enumerate(numbers, 1):
        sheet.cell(row, 2, number)
    dates = [
        datetime.datetime(2024, 2, 29, 13, 30), datetime.date(1950, 1, 1), datetime.time(6, 30, 15), datetime.timedelta(hours=30),
        datetime.datetime(1999, 12, 31, 23, 59, 59), datetime.date(1905, 3, 1), datetime.date(9999, 12, 31),
    ]
    for row, date in enumerate(dates, 1):
        sheet.cell(row, 3, date)
    for row, error in enumerate(['#N/A', '#DIV/0!', '#REF!', '#VALUE!', '#NAME?', '#NUM!', '#NULL!'], 1):
        sheet.cell(row, 4, error).data_type = 'e'
    formulas = ['=B1+B2', "=SUM('Zweite Tab'!A1:A3)", '=IF(B1>0,"ja & nein","")', '=_xlfn.CONCAT(A1,"x")', '=TRUE', '=A1&"_xlfn.CONCAT("', '=_xlfn.LET(_xlpm.a,1,_xlpm.a+1)']
    for row, formula in enumerate(formulas, 1):
        sheet.cell(row, 5, formula)
    array(sheet, 'E10', 'E10:E12', '=B1:B3*2')
    for row, pattern in enumerate(['#,##0.00 "€"', '0.0%', '[$-407]d. mmmm yyyy', '0.00E+00', '@', '# ?/?', '#,##0;[Red]-#,##0'], 1):
        cell = sheet.cell(row, 6, 1234.5)
        cell.number_format = pattern


def styles(sheet):
    sides = ['thin', 'hair', 'dotted', 'dashed', 'dashDot', 'dashDotDot', 'double', 'medium', 'mediumDashed', 'mediumDashDot', 'mediumDashDotDot', 'slantDashDot', 'thick']
    for row, side in enumerate(sides, 1):
        sheet.cell(row, 1, side).border = Border(left=Side(side, color='FF0000FF'), top=Side(side), bottom=Side('thin'), right=Side(side), diagonal=Side(side), diagonalUp=True)
    fonts = [
        Font(name='Courier New', size=14, bold=True, italic=True, underline='double', strike=True, color='FFFF0000'), Font(name='Arial', size=11, color=Color(theme=5)),
        Font(name='Arial', size=11, color=Color(indexed=10)), Font(name='Arial', size=8, underline='single'), Font(name='Arial', size=11, vertAlign='superscript'),
    ]
    for row, font in enumerate(fonts, 1):
        sheet.cell(row, 2, f'font {row}').font = font
    sheet['C1'].fill = PatternFill('solid', fgColor='FF00FF00')
    sheet['C2'].fill = PatternFill('solid', fgColor=Color(theme=4, tint=0.4))
    places = [
        Alignment(horizontal='center', vertical='top', wrap_text=True), Alignment(text_rotation=45), Alignment(text_rotation=135), Alignment(text_rotation=255),
        Alignment(horizontal='right', vertical='center'), Alignment(horizontal='justify', vertical='bottom'), Alignment(horizontal='distributed'),
    ]
    for row, place in enumerate(places, 1):
        sheet.cell(row, 4, f'place {row}').alignment = place


def arrangement(sheet):
    sheet['A1'] = 'merged'
    sheet.merge_cells('A1:B2')
    sheet.merge_cells('D4:D9')
    sheet.column_dimensions['B'].width = 30
    sheet.column_dimensions['C'].hidden = True
    sheet.row_dimensions[3].height = 40
    sheet.row_dimensions[5].hidden = True
    sheet.freeze_panes = 'B3'
    sheet['F4'] = 'link'
    sheet['F4'].hyperlink = 'https://example.com/x?a=1&b=2'
    sheet['F5'] = 'inside'
    sheet['F5'].hyperlink = "#'Zweite Tab'!A1"
    sheet['F5'].hyperlink.location = "'Zweite Tab'!A1"
    sheet['F5'].hyperlink.target = None
    sheet['F6'] = 'https://example.com/'
    sheet['F6'].hyperlink = 'https://example.com/'


def kept(sheet):
    sheet['A1'] = 'note'
    sheet['A1'].comment = Comment('a note', 'me')
    validation = DataValidation(type='list', formula1='"a,b,c"')
    validation.add('A2')
    sheet.add_data_validation(validation)
    sheet.conditional_formatting.add('A1:A5', CellIsRule(operator='greaterThan', formula=['1'], fill=PatternFill(bgColor='FFFF0000')))
    sheet.auto_filter.ref = 'A1:B3'
    sheet.print_area = 'A1:D10'
    sheet.page_setup.orientation = 'landscape'
    sheet['B7'] = 'note'
    sheet['B7'].comment = Comment('two\nlines & <more>', 'somebody')
    sheet.conditional_formatting.add('B1:B5', ColorScaleRule(start_type='min', start_color='FFFF0000', end_type='max', end_color='FF00FF00'))
    sheet.conditional_formatting.add('B1:B5', FormulaRule(formula=['$A1="x"'], font=Font(bold=True, color='FF0000FF')))


def rewrite(path, part, change):
    """Changes the text of a part."""
    source = zipfile.ZipFile(path)
    out = io.BytesIO()
    with zipfile.ZipFile(out, 'w', zipfile.ZIP_DEFLATED) as target:
        for name in source.namelist():
            data = source.read(name)
            target.writestr(name, change(data.decode()) if name == part else data)
    with open(path, 'wb') as file:
        file.write(out.getvalue())


def shared(text):
    """Gives the second tab formulas that share one text, which openpyxl does not write."""
    for row in (1, 2, 3):
        attributes = ' ref="B1:B3"' if row == 1 else ''
        formula = f'<f t="shared"{attributes} si="0">{"A1*$A$3" if row == 1 else ""}</f>'
        text = text.replace(f'<c r="A{row}"><v>{row}</v></c>', f'<c r="A{row}"><v>{row}</v></c><c r="B{row}">{formula}<v>{row * 3}</v></c>')
        text = text.replace(f'<c r="A{row}" t="n"><v>{row}</v></c>', f'<c r="A{row}"><v>{row}</v></c><c r="B{row}">{formula}<v>{row * 3}</v></c>')
    return text


def define(book, name, text, tab=None):
    if not ArrayFormula:
        book.defined_names.append(DefinedName(name, attr_text=text, localSheetId=tab))
    else:
        (book if tab is None else book.worksheets[tab]).defined_names.add(DefinedName(name, attr_text=text))


def table(sheet, name, ref, style=None, totals=None, **more):
    """totals: functions by the places of columns."""
    made = Table(displayName=name, ref=ref, tableStyleInfo=TableStyleInfo(name=style, showRowStripes=True) if style else None, **more)
    made._initialise_columns()
    for column, cell in zip(made.tableColumns, sheet[ref][0]):
        column.name = cell.value
    for place, function in (totals or {}).items():
        made.tableColumns[place].totalsRowFunction = function
    sheet.add_table(made)
    return made


def tables(path):
    book = openpyxl.Workbook()
    data = book.active
    data.title = "Jane's data"
    rows = [['Item', 'Unit [€]', 'Amount', 'Größe'], ['pen', 1.5, 4, '=Sales[[#This Row],[Unit \'[€\']]]*Sales[[#This Row],[Amount]]'], ['ink', 10, 2, '=[@[Unit \'[€\']]]*[@Amount]'], ['pad', 3, 5, '=Sales[@Amount]*rate']]
    for row in [*rows, ['all', None, '=SUBTOTAL(109,Sales[Amount])', '=SUBTOTAL(109,Sales[Größe])']]:
        data.append(row)
    sales = table(data, 'Sales', 'A1:D5', 'TableStyleMedium9', {2: 'sum', 3: 'sum'}, totalsRowCount=1)
    sales.tableColumns[0].totalsRowLabel = 'all'
    sales.autoFilter.ref = 'A1:D4'
    sales.autoFilter.filterColumn.append(FilterColumn(colId=1, filters=Filters(filter=['1.5', '10'])))
    for row, values_ in enumerate([['Code', 'Tax'], ['pen', 0.1], ['ink', 0.2]], 2):
        for column, value in enumerate(values_, 7):
            data.cell(row, column, value)
    table(data, 'taxes', 'G2:H4')
    other = book.create_sheet('other')
    define(book, 'rate', "'Jane''s data'!$H$4")
    define(book, 'items', 'Sales[Item]')
    define(book, 'twice', 'rate*2')
    define(book, 'limit', '5')
    define(book, 'word', '"rate"')
    define(book, 'moving', "'Jane''s data'!A1")
    define(book, 'limit', '7', 1)
    formulas = [
        'SUM(Sales[Amount])', 'SUM(sales[[#All],[amount]:[Größe]])', 'COUNTA(items)', 'ROWS(Sales)', 'twice+limit', 'word&"rate"', "SUM(INDEX(Sales[Amount],1):INDEX(Sales[Amount],2))",
        'Sales[[#Headers],[Unit \'[€\']]]', 'Sales[[#Totals],[Amount]]', 'SUMIFS(Sales[Amount],Sales[Item],"<>ink")', 'INDEX(taxes[Tax],MATCH("ink",taxes[Code],0))', 'moving', 'SUM(Gone[x])', 'Sales[Item]',
    ]
    for row, formula in enumerate(formulas, 1):
        other.cell(row, 1, f'={formula}')
    array(other, 'C1', 'C1:C3', '=Sales[Amount]*limit')
    book.save(path)


def make(path, epoch=None):
    book = openpyxl.Workbook()
    if epoch == 'mac':
        book.epoch = CALENDAR_MAC_1904
    first = book.active
    first.title = "Daten & ä's"
    values(first)
    second = book.create_sheet('Zweite Tab')
    second.sheet_properties.tabColor = 'FF112233'
    for row in (1, 2, 3):
        second.cell(row, 1, row)
    styles(book.create_sheet('styles'))
    arrangement(book.create_sheet('arrangement'))
    kept(book.create_sheet('kept'))
    book.create_sheet('hidden').sheet_state = 'hidden'
    define(book, 'steuer', "'Zweite Tab'!$A$1")
    book.save(path)
    rewrite(path, 'xl/worksheets/sheet2.xml', shared)


def big(path, rows, columns):
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet('big')
    for row in range(rows):
        sheet.append([f'text {row * columns + column}' if column % 2 else (row * columns + column) * 1.25 for column in range(columns)])
    book.save(path)


def colour(value):
    return value.rgb if value is not None and value.type == 'rgb' else None


def cell_of(cell):
    font, border, place = cell.font, cell.border, cell.alignment
    sides = {name: [getattr(border, name).style, colour(getattr(border, name).color)] for name in ('left', 'right', 'top', 'bottom', 'diagonal') if getattr(border, name) and getattr(border, name).style}
    value = cell.value
    if ArrayFormula and isinstance(value, ArrayFormula):
        value = value.text
    return {
        'type': cell.data_type, 'value': str(value), 'format': cell.number_format,
        'font': [font.name, font.sz, bool(font.b), bool(font.i), font.u, bool(font.strike), font.vertAlign, colour(font.color)],
        'fill': colour(cell.fill.fgColor) if cell.fill.patternType == 'solid' else None, 'border': sides,
        'place': [place.horizontal, place.vertical, bool(place.wrap_text), place.text_rotation],
        'link': (cell.hyperlink.target or '#' + cell.hyperlink.location) if cell.hyperlink else None,
    }


def read(path):
    book = openpyxl.load_workbook(path)
    shown = openpyxl.load_workbook(path, data_only=True)
    tabs = []
    for sheet in book.worksheets:
        values_of = shown[sheet.title]
        cells = {}
        for row in sheet.iter_rows():
            for cell in row:
                if cell.value is not None or cell.has_style:
                    cells[cell.coordinate] = cell_of(cell)
                    if cell.data_type == 'f':
                        cells[cell.coordinate]['shown'] = str(values_of[cell.coordinate].value)
        widths = {name: [round(one.width, 2), one.hidden] for name, one in sheet.column_dimensions.items() if one.width != 13 or one.hidden}
        heights = {str(row): [one.height, bool(one.hidden)] for row, one in sheet.row_dimensions.items() if one.height or one.hidden}
        arrays = dict(sheet.array_formulae) if ArrayFormula else {place: one['ref'] for place, one in sheet.formula_attributes.items() if one.get('t') == 'array'}
        rules = sorted(
            [str(one.sqref), rule.type, rule.operator, rule.formula, rule.priority, colour(rule.dxf.fill.bgColor) if rule.dxf and rule.dxf.fill else None, bool(rule.dxf and rule.dxf.font and rule.dxf.font.b), [colour(c) for c in rule.colorScale.color] if rule.colorScale else None]
            for one in sheet.conditional_formatting
            for rule in one.rules
        )
        validations = [[str(one.sqref), one.type, one.formula1, one.allow_blank] for one in sheet.data_validations.dataValidation]
        notes = {cell.coordinate: [cell.comment.text, cell.comment.author] for row in sheet.iter_rows() for cell in row if cell.comment}
        names = {name.name: name.attr_text for name in (book.defined_names.values() if ArrayFormula else book.defined_names.definedName)}
        tables_of = {
            one.displayName: [
                one.ref, one.headerRowCount, one.totalsRowCount, [[column.name, column.totalsRowFunction, column.totalsRowLabel] for column in one.tableColumns],
                one.tableStyleInfo and [one.tableStyleInfo.name, one.tableStyleInfo.showRowStripes],
                one.autoFilter and [one.autoFilter.ref, [[column.colId, column.filters.filter] for column in one.autoFilter.filterColumn]],
            ]
            for one in sheet.tables.values()
        }
        tabs.append({
            'tables': tables_of,
            'rules': rules, 'validations': validations, 'notes': notes, 'names': names, 'filter': sheet.auto_filter.ref, 'print': sheet.print_area, 'page': sheet.page_setup.orientation,
            'name': sheet.title, 'state': sheet.sheet_state, 'colour': colour(sheet.sheet_properties.tabColor), 'freeze': sheet.freeze_panes,
            'merges': sorted(str(one) for one in sheet.merged_cells.ranges), 'widths': widths, 'heights': heights, 'arrays': arrays, 'cells': cells,
        })
    json.dump(tabs, sys.stdout)


if __name__ == '__main__':
    command, file, *rest = sys.argv[1:]
    if command == 'make':
        make(file, *rest)
    elif command == 'tables':
        tables(file)
    elif command == 'big':
        big(file, *map(int, rest))
    else:
        read(file)
