"""CSV files for the tests, as programs write them, and how Python reads such files.

make FOLDER: writes files of pandas and of Python, and forms that other programs write; prints [[file, options of the import, rows], ...]
read LIST: a JSON file, [[file, encoding, separator], ...]; prints the rows of each
"""
import bz2
import csv
import gzip
import io
import json
import os
import random
import sys

import pandas

csv.field_size_limit(1 << 30)
WORDS = ['', 'a', 'Köln', '1,5', '-1.234,50', 'x;y', 'p|q', 'tab\there', 'two\nlines', 'two\r\nlines', 'say "hi"', "it's", ' padded ', '007', '🙂', '""', 'end"', '#N/A', 'NULL', '1e5', '-', '+49 30 1234', '=1+1', '@x', "'s-Gravenhage", '日本', 'naïve', '12:30', '2024-02-29', '0.1', '1 000', 'TRUE']
LATIN = [word for word in WORDS if all(ord(letter) < 256 for letter in word)]


def rows_of(words, columns, count, numbered=True):
    """A header, and rows that begin with a number, so that none is empty."""
    head = [f'Spalte {i}' for i in range(columns)]
    return [head] + [[str(i)] + [random.choice(words) for _ in range(columns - 1)] for i in range(count)]


def written(rows, newline='\r\n', **dialect):
    out = io.StringIO(newline='')
    csv.writer(out, lineterminator=newline, **dialect).writerows(rows)
    return out.getvalue()


def quote_texts(rows, separator, newline, decimal='.'):
    """As R and LibreOffice do it: texts have quotes, numbers have none, NA has none."""
    def field(text):
        if text.replace('.', '', 1).lstrip('-').isdigit():
            return text.replace('.', decimal)
        return 'NA' if text == 'NULL' else '"' + text.replace('"', '""') + '"'
    return ''.join(separator.join(map(field, row)) + newline for row in rows)


def programs():
    """name, bytes, options, rows"""
    plain = rows_of(WORDS, 5, 40)
    latin = rows_of(LATIN, 5, 40)
    simple = rows_of([word for word in WORDS if not set(word) & set('"\t\r\n\\')], 5, 40)
    yield 'excel', written(plain).encode(), {}, plain
    yield 'excel, UTF-8', b'\xef\xbb\xbf' + written(plain).encode(), {}, plain
    yield 'excel, semicolons', written(latin, delimiter=';').encode('cp1252'), {'separator': ';'}, latin
    yield 'excel, sep=', b'sep=;\r\n' + written(latin, delimiter=';').encode('cp1252'), {}, latin
    yield 'excel, Unicode text', b'\xff\xfe' + written(plain, delimiter='\t').encode('utf-16-le'), {'separator': '\t'}, plain
    yield 'excel, Macintosh', written(latin, newline='\r', quoting=csv.QUOTE_ALL).encode(), {}, latin
    yield 'libreoffice', written(plain, newline='\n').encode(), {}, plain
    yield 'libreoffice, all quoted', written(plain, newline='\n', quoting=csv.QUOTE_ALL).encode(), {}, plain
    yield 'libreoffice, texts quoted', quote_texts(plain, ',', '\n').encode(), {}, [['NA' if field == 'NULL' else field for field in row] for row in plain]
    yield 'r, write.csv', quote_texts(latin, ',', '\n').encode(), {}, [['NA' if field == 'NULL' else field for field in row] for row in latin]
    yield 'r, write.csv2', quote_texts(latin, ';', '\n', ',').encode('latin1'), {'separator': ';'}, [['NA' if field == 'NULL' else field.replace('.', ',') if field == '0.1' else field for field in row] for row in latin]
    yield 'python, unix', written(plain, newline='\n', quoting=csv.QUOTE_ALL).encode(), {}, plain
    yield 'python, single quotes', written(plain, quotechar="'").encode(), {'quote': "'", 'separator': ','}, plain
    yield 'sqlite3 -csv', written(plain, newline='\r\n').encode(), {}, plain
    yield 'sqlite3 -tabs', '\n'.join('\t'.join(row) for row in simple).encode(), {'separator': '\t', 'quote': ''}, simple
    # MySQL writes a backslash and N for nulls, which stays: it is no CSV.
    nulls = [['\\N' if field == 'NULL' else field for field in row] for row in simple]
    yield 'mysql, outfile', '\n'.join('\t'.join(row) for row in nulls).encode(), {'separator': '\t', 'quote': ''}, nulls
    yield 'no line end', written(plain).rstrip('\r\n').encode(), {}, plain
    yield 'empty lines at the end', (written(plain) + '\r\n\r\n').encode(), {}, plain
    yield 'one column', ('Name\n' + ''.join(f'name {i}\n' for i in range(50))).encode(), {}, [['Name']] + [[f'name {i}'] for i in range(50)]
    yield 'ragged', b'a,b,c\n1\n2,3\n4,5,6,7\n', {}, [['a', 'b', 'c'], ['1'], ['2', '3'], ['4', '5', '6', '7']]
    frame = pandas.DataFrame({'number': [1.5, 2.0, None, 1e20], 'text': ['a,b', 'say "hi"', None, 'two\nlines'], 'day': pandas.to_datetime(['2024-02-29'] * 4), 'yes': [True, False, True, True]})
    shown = [['', 'number', 'text', 'day', 'yes'], ['0', '1.5', 'a,b', '2024-02-29', 'True'], ['1', '2.0', 'say "hi"', '2024-02-29', 'False'], ['2', '', '', '2024-02-29', 'True'], ['3', '1e+20', 'two\nlines', '2024-02-29', 'True']]
    yield 'pandas', frame.to_csv().encode(), {}, shown
    yield 'pandas, tabs', frame.to_csv(sep='\t').encode(), {}, shown
    yield 'pandas, no index', frame.to_csv(index=False, quoting=csv.QUOTE_NONNUMERIC).encode(), {}, [row[1:] for row in shown]
    yield 'pandas, |', frame.to_csv(sep='|', na_rep='NaN').encode(), {}, [[field or 'NaN' if i and j in (1, 2) else field for j, field in enumerate(row)] for i, row in enumerate(shown)]
    yield 'pandas, UTF-16', frame.to_csv().encode('utf-16'), {}, shown


def make(folder):
    random.seed(4711)
    files = []
    for name, data, options, rows in programs():
        path = os.path.join(folder, f'{name}.csv')
        with open(path, 'wb') as file:
            file.write(data)
        files.append([path, options, rows])
    return files


def content(path):
    opener = gzip.open if path.endswith('.gz') else bz2.open if path.endswith('.bz2') else open
    with opener(path, 'rb') as file:
        return file.read()


def read(path, encoding, separator):
    text = content(path).decode({'UTF-8': 'utf-8-sig', 'UTF-16LE': 'utf-16'}.get(encoding, encoding))
    return list(csv.reader(io.StringIO(text, newline=''), delimiter=separator or ','))


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        json.dump(make(sys.argv[2]), sys.stdout)
    else:
        with open(sys.argv[2], encoding='utf-8') as file:
            json.dump([read(*one) for one in json.load(file)], sys.stdout)
