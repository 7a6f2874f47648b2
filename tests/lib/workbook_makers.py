"""Makes workbooks by programs that Debian has, for the tests: as many forms of them as there are writers of XLSX.

FOLDER: writes them there
"""
import datetime
import math
import os
import sys

import openpyxl
import workbook
import xlsxwriter

DAY = datetime.datetime(2024, 2, 29, 13, 30)


def xlsxwriter_plain(book):
    """Cells of each type, in number formats of several kinds."""
    sheet = book.add_worksheet('Übersicht')
    for row in range(60):
        sheet.write_row(row, 0, [row, row / 7, f'text {row % 5}', row % 2 == 0, 'Größe & <x>', '=1+1' if row == 1 else ''])
    formats = ['0.00', '#,##0.00', 'yyyy-mm-dd', 'd.m.yy', 'hh:mm:ss', '0%', '@', '[h]:mm', '"x" 0', '0.00E+00']
    for row, pattern in enumerate(formats):
        sheet.write_number(row, 7, 45351.5625, book.add_format({'num_format': pattern}))
    sheet.write_datetime('H12', DAY, book.add_format({'num_format': 'dd/mm/yyyy hh:mm'}))
    sheet.write_string('I1', '0123')
    sheet.write_url('I2', 'https://example.com/?a=1&b="x"', string='link')
    sheet.write_rich_string('I3', 'plain ', book.add_format({'bold': True}), 'bold', ' and plain')
    sheet.write_boolean('I4', True)
    sheet.write_blank('I5', None, book.add_format({'bg_color': '#ff0000'}))
    for row, formula in enumerate(['=SUM(A1:A60)', '=A1&"x"', '=1/0', '=NA()', '=IF(A1=0,TRUE,FALSE)', '=AVERAGE(B1:B60)']):
        sheet.write_formula(row, 10, formula)
    sheet.write_array_formula('L1:L3', '{=A1:A3*2}')
    sheet.write_dynamic_array_formula('M1', '=SORT(A1:A3,1,-1)')


def xlsxwriter_features(book):
    """What a sheet has besides cells."""
    sheet = book.add_worksheet('features')
    sheet.write_row('A1', ['a', 'b', 'c'])
    for row in range(1, 20):
        sheet.write_row(row, 0, [row, row * row, 'x' * row])
    sheet.add_table('A1:C20', {'columns': [{'header': 'a'}, {'header': 'b'}, {'header': 'c'}]})
    chart = book.add_chart({'type': 'column'})
    chart.add_series({'values': '=features!$A$2:$A$20'})
    sheet.insert_chart('F2', chart)
    other = book.add_worksheet('more')
    other.write_comment('A1', 'a note')
    other.data_validation('A2', {'validate': 'list', 'source': ['x', 'y']})
    other.conditional_format('A1:A9', {'type': 'data_bar'})
    other.conditional_format('B1:B9', {'type': 'cell', 'criteria': '>', 'value': 5, 'format': book.add_format({'bg_color': '#00ff00'})})
    other.autofilter('D1:E5')
    other.freeze_panes(2, 1)
    other.merge_range('G1:H2', 'merged', book.add_format({'align': 'center', 'border': 2}))
    other.set_column('B:B', 30)
    other.set_row(4, 33)
    other.set_row(6, None, None, {'hidden': True})
    other.protect()
    book.define_name('Rate', '=more!$B$1')
    other.write('B1', 0.19)
    other.write_formula('B2', '=Rate*100')
    line = book.add_chart({'type': 'line'})
    line.add_series({'values': '=features!$B$2:$B$20'})
    book.add_chartsheet().set_chart(line)


def xlsxwriter_numbers(book):
    """Numbers at the edges, with the texts of cells in the cells."""
    sheet = book.add_worksheet('numbers')
    for row, number in enumerate([0, -0.0, 1e-300, 1.5e308, 5e-324, 0.1 + 0.2, 1 / 3, 2**53 + 1, -123456789.123456789, math.pi]):
        sheet.write_row(row, 0, [number, str(number), f' {number} '])


def openpyxl_dates(path):
    """Dates of both epochs' edges in many formats."""
    book = openpyxl.Workbook()
    sheet = book.active
    for row, pattern in enumerate(['yyyy-mm-dd', 'dd/mm/yy', 'mmm yyyy', '[$-409]d-mmm-yy', 'h:mm AM/PM', 'mm:ss.0', '[h]:mm:ss', '[$-F800]dddd', 'General', '"day" d'], 1):
        for column, serial in enumerate([1, 59, 60, 61, 25569, 45351.999988, 2958465, 0.5, 1.75], 1):
            cell = sheet.cell(row, column, serial)
            cell.number_format = pattern
    book.save(path)


def openpyxl_inline(path):
    """Written row by row."""
    book = openpyxl.Workbook(write_only=True)
    for tab in range(3):
        sheet = book.create_sheet(f'Tab {tab}!')
        for row in range(40):
            sheet.append([f'r{row}', row * 1.1, None, DAY + datetime.timedelta(days=row), row % 3 == 0, f"='Tab 0!'!B{row + 1}*2"])
    book.save(path)


def main(folder):
    for make, options in [(xlsxwriter_plain, {}), (xlsxwriter_features, {}), (xlsxwriter_numbers, {'in_memory': True, 'constant_memory': True}), (xlsxwriter_plain, {'date_1904': True})]:
        name = make.__name__ + ('_mac' if 'date_1904' in options else '')
        with xlsxwriter.Workbook(os.path.join(folder, f'{name}.xlsx'), options) as book:
            make(book)
    for make in (openpyxl_dates, openpyxl_inline):
        make(os.path.join(folder, f'{make.__name__}.xlsx'))
    workbook.make(os.path.join(folder, 'openpyxl_all.xlsx'))
    workbook.make(os.path.join(folder, 'openpyxl_mac.xlsx'), 'mac')


if __name__ == '__main__':
    main(sys.argv[1])
