"""Makes and reads workbooks with pictures for the tests, by openpyxl. Pillow is not needed.

make FILE PICTURE...: a workbook whose tabs have these files as pictures
read FILE: prints the pictures of each tab as JSON
"""
import hashlib
import json
import os
import sys
import zipfile

import openpyxl
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.drawing.image import Image
from openpyxl.drawing.spreadsheet_drawing import AbsoluteAnchor, AnchorMarker, OneCellAnchor, SpreadsheetDrawing, TwoCellAnchor
from openpyxl.drawing.xdr import XDRPoint2D, XDRPositiveSize2D
from openpyxl.packaging.relationship import get_dependents, get_rels_path
from openpyxl.xml.functions import fromstring


class Picture(Image):
    def __init__(self, path, anchor):
        self.path_of_file = path
        self.format = os.path.splitext(path)[1][1:]
        self.width = self.height = 10
        self.anchor = anchor

    def _data(self):
        with open(self.path_of_file, 'rb') as file:
            return file.read()


def make(path, pictures):
    size = XDRPositiveSize2D(952500, 476250)
    book = openpyxl.Workbook()
    first = book.active
    first.title = 'first'
    second = book.create_sheet('second')
    first['A1'] = 'text'
    first['A1'].comment = Comment('a note', 'me')
    first['B1'] = 1
    chart = BarChart()
    chart.add_data(Reference(first, min_col=2, min_row=1, max_row=1))
    first.add_chart(chart, 'H1')
    anchors = [
        TwoCellAnchor(_from=AnchorMarker(1, 100, 2, 200), to=AnchorMarker(4, 300, 9, 400)),
        TwoCellAnchor(editAs='oneCell', _from=AnchorMarker(1, 100, 2, 200), to=AnchorMarker(4, 300, 9, 400)),
        OneCellAnchor(_from=AnchorMarker(2, 5, 20, 6), ext=size),
        AbsoluteAnchor(pos=XDRPoint2D(1234, 5678), ext=size),
    ]
    for i, anchor in enumerate(anchors):
        first.add_image(Picture(pictures[i % len(pictures)], anchor))
    second.add_image(Picture(pictures[-1], OneCellAnchor(_from=AnchorMarker(0, 0, 0, 0), ext=size)))
    book.save(path)


def marker(one):
    return [one.col, one.colOff, one.row, one.rowOff]


def picture_of(anchor, bytes_of):
    found = {'kind': anchor.tagname, 'name': anchor.pic.nvPicPr.cNvPr.name, 'sha256': hashlib.sha256(bytes_of(anchor.pic.blipFill.blip.embed)).hexdigest()}
    for name in ('_from', 'to'):
        if getattr(anchor, name, None) is not None:
            found[name] = marker(getattr(anchor, name))
    if getattr(anchor, 'pos', None) is not None:
        found['pos'] = [anchor.pos.x, anchor.pos.y]
    if getattr(anchor, 'ext', None) is not None:
        found['ext'] = [anchor.ext.width, anchor.ext.height]
    found['edit'] = getattr(anchor, 'editAs', None)
    return found


def read(path):
    # The program itself opens it.
    names = openpyxl.load_workbook(path).sheetnames
    archive = zipfile.ZipFile(path)
    tabs = {}
    for number, name in enumerate(names, 1):
        rels = get_rels_path(f'xl/worksheets/sheet{number}.xml')
        drawings = [one.target for one in get_dependents(archive, rels).Relationship if one.Type.endswith('/drawing')] if rels in archive.namelist() else []
        tabs[name] = []
        for part in drawings:
            drawing = SpreadsheetDrawing.from_tree(fromstring(archive.read(part)))
            files = get_dependents(archive, get_rels_path(part))
            anchors = [*drawing.absoluteAnchor, *drawing.oneCellAnchor, *drawing.twoCellAnchor]
            tabs[name] += [picture_of(anchor, lambda embed: archive.read(files[embed].target)) for anchor in anchors if anchor.pic]
    json.dump(tabs, sys.stdout)


if __name__ == '__main__':
    command, file, *rest = sys.argv[1:]
    if command == 'make':
        make(file, rest)
    else:
        read(file)
