/*
 * test_formula.c - what becomes of the references of formulas when rows and columns come and go, or a sheet is
 * renamed: against tests/vectors/formulas.json, which gateway/web/test/v2/formula.test.ts reads as well; against lists
 * of lines; and the limits. `test_formula FILE` checks the vectors of that file alone:
 * gateway/web/test/univer.formula.test.ts writes random ones.
 */
#include "common/formula_shift.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "tap.h"

#define VECTORS "../vectors/formulas.json"

static char result[SHEET_MAX_CONTENT_BYTES + 1];

/* The sheet that changes: its name, its new one, and whether references without a name are of it. */
typedef struct Sheet
{
	const char *name, *new_name;
	bool own;
} Sheet;

static bool
is_name(const void *arg, const char *name, size_t len)
{
	const Sheet *sheet = arg;

	return strlen(sheet->name) == len && strncasecmp(sheet->name, name, len) == 0;
}

/* change NULL: the sheet is renamed. */
static FormulaShift
shift_of(const char *formula, const LineChange *change, const Sheet *sheet)
{
	char quoted[200] = "";
	FormulaChange call = {.move = change != NULL ? formula_move_lines : NULL, .move_arg = change, .own = sheet->own};
	uint32_t len = 0;
	FormulaShift done;

	if (sheet->name != NULL)
	{
		call.is_name = is_name;
		call.name_arg = sheet;
	}
	if (sheet->new_name != NULL)
	{
		formula_quote_name(sheet->new_name, quoted);
		call.new_name = quoted;
	}
	done = formula_shift((EditText){formula, (uint32_t) strlen(formula)}, &call, result, &len);

	result[len] = '\0';
	if (done == FORMULA_SAME)
		strcpy(result, formula);
	return done;
}

static FormulaShift
shift(const char *formula, const LineChange *change)
{
	return shift_of(formula, change, &(Sheet){.own = true});
}

/* ---- the vectors ---- */

static LineChange
change_of(const cJSON *tuple)
{
	const char *kind = cJSON_GetArrayItem(tuple, 0)->valuestring;

	return (LineChange){.rows = strstr(kind, "Rows") != NULL,
						.insert = kind[0] == 'i',
						.at = (uint32_t) cJSON_GetArrayItem(tuple, 1)->valuedouble,
						.n = (uint32_t) cJSON_GetArrayItem(tuple, 2)->valuedouble};
}

static void
check_vectors(const char *path)
{
	static char text[32 * 1024 * 1024];
	FILE *file = fopen(path, "rb");
	cJSON *vectors;
	const cJSON *vector;

	if (file == NULL || fread(text, 1, sizeof(text) - 1, file) == 0 || (vectors = cJSON_Parse(text)) == NULL)
	{
		perror(path);
		exit(1);
	}
	fclose(file);
	cJSON_ArrayForEach(vector, vectors)
	{
		const char *formula = cJSON_GetObjectItem(vector, "formula")->valuestring;
		const char *wanted = cJSON_GetObjectItem(vector, "result")->valuestring;
		const cJSON *tuple = cJSON_GetObjectItem(vector, "change");
		LineChange change = tuple != NULL ? change_of(tuple) : (LineChange){.n = 0};
		Sheet sheet = {.name = cJSON_GetStringValue(cJSON_GetObjectItem(vector, "sheet")),
					   .new_name = cJSON_GetStringValue(cJSON_GetObjectItem(vector, "rename")),
					   .own = tuple != NULL && !cJSON_IsTrue(cJSON_GetObjectItem(vector, "other"))};
		FormulaShift done = shift_of(formula, tuple != NULL ? &change : NULL, &sheet);

		TAP_OK(strcmp(result, wanted) == 0 && (done == FORMULA_SHIFTED) == (strcmp(formula, wanted) != 0), "%s: %s",
			   cJSON_GetObjectItem(vector, "name")->valuestring, result);
	}
	cJSON_Delete(vectors);
}

/* ---- lines that have names ---- */

#define LINES 40

typedef struct Lines
{
	int names[LINES * 2];
	int count;
} Lines;

static void
lines_change(Lines *lines, const LineChange *change)
{
	for (uint32_t i = 0; i < change->n; i++)
	{
		int *at = &lines->names[change->at];
		size_t behind = (size_t) (lines->count - (int) change->at);

		if (change->insert)
		{
			memmove(at + 1, at, behind * sizeof(int));
			*at = -1;
			lines->count++;
		}
		else
		{
			memmove(at, at + 1, (behind - 1) * sizeof(int));
			lines->count--;
		}
	}
}

/* Where the lines named first to last are; false if they are gone. */
static bool
lines_find(const Lines *lines, int first, int last, uint32_t *from, uint32_t *to)
{
	bool found = false;

	for (int i = 0; i < lines->count; i++)
	{
		if (lines->names[i] < first || lines->names[i] > last)
			continue;
		*from = found ? *from : (uint32_t) i;
		*to = (uint32_t) i;
		found = true;
	}
	return found;
}

static bool
round_agrees(unsigned seed)
{
	Lines lines = {.count = LINES};
	int first, last, swap;
	uint32_t from, to;
	LineChange change;
	char formula[100], wanted[100];

	srand(seed);
	for (int i = 0; i < LINES; i++)
		lines.names[i] = i;
	change = (LineChange){true, rand() % 2 == 0, (uint32_t) rand() % 30, 1 + (uint32_t) rand() % 10};
	first = rand() % LINES;
	last = rand() % LINES;
	snprintf(formula, sizeof(formula), "=f(C%d:$D$%d,%d:%d)", first + 1, last + 1, first + 1, last + 1);
	lines_change(&lines, &change);
	swap = first > last;
	if (!lines_find(&lines, swap ? last : first, swap ? first : last, &from, &to))
		strcpy(wanted, "=f(#REF!,#REF!)");
	else
		snprintf(wanted, sizeof(wanted), "=f(C%u:$D$%u,%u:%u)", (swap ? to : from) + 1, (swap ? from : to) + 1,
				 (swap ? to : from) + 1, (swap ? from : to) + 1);
	shift(formula, &change);
	if (strcmp(result, wanted) != 0)
		printf("# %s, %s %u %u: %s, not %s\n", formula, change.insert ? "insert" : "delete", change.at, change.n,
			   result, wanted);
	return strcmp(result, wanted) == 0;
}

static void
check_lines(void)
{
	unsigned failed = 0;

	for (unsigned seed = 1; seed <= 20000 && failed == 0; seed++)
		failed = round_agrees(seed) ? 0 : seed;
	TAP_OK(failed == 0, "20000 random changes of ranges agree with lists of lines (seed %u)", failed);
}

/* ---- limits ---- */

static void
check_lengths(void)
{
	static char formula[SHEET_MAX_CONTENT_BYTES + 1];
	LineChange insert = {true, true, 0, 1}, far = {true, true, 0, SHEET_MAX_ROWS - 100};
	size_t len = 0;

	snprintf(formula, sizeof(formula), "=A9+\"%32761s\"", "");
	TAP_OK(shift(formula, &insert) == FORMULA_TOO_LONG, "one character too many");
	snprintf(formula, sizeof(formula), "=A9+\"%32760s\"", "");
	formula[6] = '\xC3';
	formula[7] = '\xA9';
	TAP_OK(shift(formula, &insert) == FORMULA_SHIFTED && strlen(result) == strlen(formula) + 1,
		   "characters count, not bytes");
	formula[len++] = '=';
	while (len + 3 <= SHEET_MAX_CHARS)
	{
		memcpy(formula + len, "1:1,", 4);
		len += 4;
	}
	formula[len - 1] = '\0';
	TAP_OK(shift(formula, &far) == FORMULA_TOO_LONG, "a text that grows beyond the buffer");
}

/* ---- names of sheets ---- */

static void
check_names(void)
{
	static const char *const names[][2] = {{"Data", "Data"},   {"Sheet2", "Sheet2"},	  {"a_b", "a_b"},
										   {"_1", "_1"},	   {"a b", "'a b'"},		  {"it's", "'it''s'"},
										   {"A1", "'A1'"},	   {"tab2", "'tab2'"},		  {"R1C1", "'R1C1'"},
										   {"c", "'c'"},	   {"2024", "'2024'"},		  {"1x", "'1x'"},
										   {"true", "'true'"}, {"a.b", "'a.b'"},		  {"a!b", "'a!b'"},
										   {"X", "X"},		   {"\xC3\x9C", "'\xC3\x9C'"}};
	static const struct
	{
		const char *formula;
		bool has;
	} formulas[] = {{"=X!A1", true},	  {"='a b'!A1", true}, {"=SUM(A1,X!B:B)", true}, {"=\"X!A1\"&A1", false},
					{"=#REF!+A1", false}, {"X!A1", false},	   {"=#DIV/0!", false},		 {"={\"X!A1\"}", false},
					{"=A1", false},		  {"='X' !A1", false}, {"=[B]X!A1", false},		 {"=A:X!A1", false}};
	char quoted[100];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
	{
		formula_quote_name(names[i][0], quoted);
		TAP_OK(strcmp(quoted, names[i][1]) == 0, "the name %s in formulas: %s", names[i][0], quoted);
	}
	for (size_t i = 0; i < sizeof(formulas) / sizeof(formulas[0]); i++)
	{
		const char *text = formulas[i].formula;

		TAP_OK(formula_has_names((EditText){text, (uint32_t) strlen(text)}) == formulas[i].has, "%s %s", text,
			   formulas[i].has ? "names a sheet" : "names no sheet");
	}
}

int
main(int argc, char **argv)
{
	if (argc > 1)
	{
		check_vectors(argv[1]);
		return tap_done();
	}
	check_vectors(VECTORS);
	check_lines();
	check_lengths();
	check_names();
	return tap_done();
}
