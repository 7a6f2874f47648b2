"""Compares workbooks cell by cell, as openpyxl reads them: what one program has written, and the export of the book that it has become.

PAIRS: a JSON file, [[name, file, exported file], ...]; prints [[name, tab, cell, what, before, after], ...] of what differs.

Not compared is what differs by design (docs/design/workbooks.md): a cell in the default font of a workbook has the sheet's; dates are to
the millisecond; an error is a value or a formula; what an array fills is computed again; formulas have references in place of names
and tables, so their values are compared. Colours of themes and palettes are None here:
LibreOffice computes them.
"""
import datetime
import json
import re
import sys
import warnings

import openpyxl

from workbook import ArrayFormula

warnings.simplefilter('ignore')


def seconds(value):
    """A date or a time as a number, to the millisecond."""
    if isinstance(value, datetime.datetime):
        return round((value - datetime.datetime(1899, 12, 30)).total_seconds(), 3)
    if isinstance(value, datetime.date):
        return seconds(datetime.datetime.combine(value, datetime.time()))
    if isinstance(value, datetime.time):
        return round(value.hour * 3600 + value.minute * 60 + value.second + value.microsecond / 1e6, 3)
    return round(value.total_seconds(), 3)


def plain(value):
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time, datetime.timedelta)):
        return ['date', seconds(value)]
    if isinstance(value, bool):
        return ['boolean', value]
    if isinstance(value, (int, float)):
        return ['number', float(value)]
    if not isinstance(value, str) or value == '':
        return ['none', None]
    # Programs differ in how they write line ends.
    return ['text', re.sub(r'_x000[dD]_|\r', '', value)]


def formula(cell):
    """Without the prefixes of newer functions."""
    text = re.sub(r'_xl(fn|ws|pm)\.', '', getattr(cell.value, 'text', cell.value) or '').strip()
    return ['error', text[1:]] if re.fullmatch(r'=#[A-Z/0-9!?]+', text) else ['formula', text]


def names_of(book):
    """A pattern of formulas that use a name or a table."""
    defined = [*book.defined_names, *(name for sheet in book.worksheets for name in sheet.defined_names)] if ArrayFormula else [one.name for one in book.defined_names.definedName]
    names = [*defined, *(name for sheet in book.worksheets for name in sheet.tables)]
    return re.compile(r'\[|(?<![\w.])(' + '|'.join(map(re.escape, names)) + r')(?![\w.(!])' if names else r'\[', re.IGNORECASE)


def colour(value):
    """None: black, or not told."""
    rgb = value.rgb[-6:] if value is not None and value.type == 'rgb' and isinstance(value.rgb, str) else None
    return None if rgb == '000000' else rgb


def style(cell, usual):
    font, fill, place = cell.font, cell.fill, cell.alignment
    return {
        'format': 'General' if cell.number_format.lower() == 'general' else cell.number_format,
        'font': ['Arial' if font.name in (None, usual.name, 'arial') else font.name, font.sz or 11, bool(font.b), bool(font.i), font.u, bool(font.strike), font.vertAlign, colour(font.color)],
        'fill': (colour(fill.fgColor) or 'another') if fill.patternType == 'solid' else None,
        'border': [getattr(cell.border, side).style if getattr(cell.border, side) else None for side in ('left', 'right', 'top', 'bottom')],
        'place': [None if place.horizontal == 'general' else place.horizontal, None if place.vertical == 'bottom' else place.vertical, bool(place.wrap_text), place.text_rotation or 0],
    }


plain_style = {'format': 'General', 'font': None, 'fill': None, 'border': [None] * 4, 'place': [None, None, False, 0]}


def read(path):
    """Each tab: its place, and its cells with what they show."""
    book, shown = openpyxl.load_workbook(path), openpyxl.load_workbook(path, data_only=True)
    tabs = {}
    usual = book._fonts[0]
    names = names_of(book)
    for sheet in book.worksheets:
        cells = {}
        ranges = list(sheet.array_formulae.values()) if ArrayFormula else [one['ref'] for one in sheet.formula_attributes.values() if one.get('t') == 'array']
        filled = {cell.coordinate for one in ranges for row in sheet[one if ':' in one else f'{one}:{one}'] for cell in row[0 if row[0].row > sheet[one.split(':')[0]].row else 1:]}
        values = shown[sheet.title]
        for row in sheet.iter_rows():
            for cell in row:
                one = style(cell, usual)
                if cell.value in (None, ''):
                    one['font'] = None  # it is not seen
                if cell.coordinate in filled or one == plain_style:
                    continue
                one['content'] = formula(cell) if cell.data_type == 'f' else ['error', cell.value] if cell.data_type == 'e' else plain(cell.value)
                if cell.data_type == 'f':
                    result = values[cell.coordinate]
                    one['shown'] = ['error', result.value] if result.data_type == 'e' else plain(result.value)
                    if one['content'][0] == 'formula' and names.search(one['content'][1]):
                        one['content'] = ['named', one['content'][1]]
                cells[cell.coordinate] = one
        tabs[sheet.title] = {'cells': cells, 'filled': filled, 'state': sheet.sheet_state, 'merges': sorted(map(str, sheet.merged_cells.ranges)), 'frozen': sheet.freeze_panes}
    return tabs


def numbers(a, b, near):
    return a and b and a[0] == b[0] in ('number', 'date') and abs(a[1] - b[1]) <= near * max(abs(a[1]), abs(b[1]))


def same(what, old, new):
    a, b = old.get(what), new.get(what)
    if a == b:
        return True
    if what == 'content' and a[0] == 'named':
        return b is not None and b[0] in ('formula', 'named')
    if what == 'content':
        # A number with a format of dates is to the millisecond.
        return old['format'] != 'General' and numbers(a, b, 1e-12)
    if what == 'shown':
        # Another program may compute other last digits; some store none.
        return a == ['none', None] or numbers(a, b, 1e-9)
    if what == 'font':
        return a and b and a[:7] == b[:7] and a[7] is None
    return what == 'fill' and a == 'another' and b is not None


def compare(name, before, after):
    for tab in [*before, *(tab for tab in after if tab not in before)]:
        if tab not in before or tab not in after:
            yield name, tab, None, 'tab', tab in before, tab in after
            continue
        for what in ('state', 'merges', 'frozen'):
            if before[tab][what] != after[tab][what]:
                yield name, tab, None, what, before[tab][what], after[tab][what]
        old, new = before[tab]['cells'], after[tab]['cells']
        for place in [*old, *(place for place in new if place not in old)]:
            if place in before[tab]['filled'] or place in after[tab]['filled']:
                continue
            if place not in old or place not in new:
                yield name, tab, place, 'cell', old.get(place), new.get(place)
                continue
            for what in old[place]:
                if not same(what, old[place], new[place]):
                    yield name, tab, place, what, old[place][what], new[place].get(what)


def main(pairs):
    differences = []
    for name, before, after in pairs:
        try:
            old = read(before)
        except Exception as error:  # openpyxl refuses some that other programs open
            differences.append([name, None, None, 'unreadable', str(error), None])
            continue
        differences += [list(one) for one in compare(name, old, read(after))]
    json.dump(differences, sys.stdout)


if __name__ == '__main__':
    with open(sys.argv[1], encoding='utf-8') as file:
        main(json.load(file))
