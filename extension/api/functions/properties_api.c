/* properties_api.c - SQL functions on the properties of a sheet. */
#include "postgres.h"

#include "api/scan/cells.h"
#include "funcapi.h"
#include "journal/store/property_store.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(sheet_properties);
PG_FUNCTION_INFO_V1(sheet_properties_version);
PG_FUNCTION_INFO_V1(sheet_properties_time);
PG_FUNCTION_INFO_V1(sheet_set_property);
PG_FUNCTION_INFO_V1(sheet_read_properties);

/* ---- reading ---- */

static void
properties_put_row(ReturnSetInfo *rsinfo, const Property *property)
{
	const PropertyTarget *target = &property->target;
	bool rows = property_has_all_rows(target), cols = property_has_all_cols(target);
	char name[A1_RANGE_MAX];
	Datum values[9];
	bool nulls[9] = {rows && cols, rows, cols, rows, cols};

	a1_format_range(name, &(A1Range){target->row0, target->col0, target->row1, target->col1});
	values[0] = CStringGetTextDatum(name);
	values[1] = Int32GetDatum((int32) target->row0);
	values[2] = Int32GetDatum((int32) target->col0);
	values[3] = Int32GetDatum((int32) target->row1);
	values[4] = Int32GetDatum((int32) target->col1);
	values[5] = PointerGetDatum(cstring_to_text_with_len(property->key.data, property->key.len));
	values[6] = DirectFunctionCall1(jsonb_in, CStringGetDatum(pnstrdup(property->value.data, property->value.len)));
	values[7] = Int64GetDatum((int64) property->seq);
	values[8] = Int64GetDatum((int64) property->uid);
	tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values, nulls);
}

static Datum
properties_return(FunctionCallInfo fcinfo, const Properties *set)
{
	InitMaterializedSRF(fcinfo, 0);
	for (uint32 i = 0; i < set->count; i++)
		properties_put_row((ReturnSetInfo *) fcinfo->resultinfo, properties_get(set, i));
	return (Datum) 0;
}

static int64
properties_begin(FunctionCallInfo fcinfo, Properties *set)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);

	permission_require(sheet_id, 0, ROLE_VIEWER, false);
	property_store_init(set);
	return sheet_id;
}

/* properties(sheet_id) */
Datum
sheet_properties(PG_FUNCTION_ARGS)
{
	Properties set;
	int64 sheet_id = properties_begin(fcinfo, &set);

	journal_read_properties(sheet_id, GetActiveSnapshot(), &set);
	return properties_return(fcinfo, &set);
}

/* properties(sheet_id, version_id) */
Datum
sheet_properties_version(PG_FUNCTION_ARGS)
{
	Properties set;
	int64 sheet_id = properties_begin(fcinfo, &set);

	catalog_require_arg(fcinfo, 1, "version");
	journal_read_version_properties(sheet_id, PG_GETARG_INT64(1), &set);
	return properties_return(fcinfo, &set);
}

/* properties(sheet_id, time) */
Datum
sheet_properties_time(PG_FUNCTION_ARGS)
{
	Properties set;
	int64 sheet_id = properties_begin(fcinfo, &set);

	catalog_require_arg(fcinfo, 1, "time");
	journal_read_past_properties(sheet_id, PG_GETARG_TIMESTAMPTZ(1), &set);
	return properties_return(fcinfo, &set);
}

/* read_properties(sheet_id): the size and the properties are those that one snapshot sees */
Datum
sheet_read_properties(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	Datum values[4];
	bool nulls[4] = {0};
	JournalView view;
	bytea *bytes;

	permission_require_gateway();
	PushActiveSnapshot(IsolationUsesXactSnapshot() ? GetTransactionSnapshot() : GetLatestSnapshot());
	journal_read(sheet_id, (uint32[4]){0, 0, 0, 0}, false, &view, NULL);
	bytes = property_store_read(sheet_id, GetActiveSnapshot());
	PopActiveSnapshot();
	values[0] = Int64GetDatum(view.seq);
	values[1] = Int32GetDatum((int32) view.rows);
	values[2] = Int32GetDatum((int32) view.cols);
	values[3] = PointerGetDatum(bytes);
	nulls[3] = bytes == NULL;
	return catalog_return_row(fcinfo, values, nulls);
}

/* ---- setting ---- */

/* A value that is null, in SQL or in JSON, removes the property. */
static char *
properties_arg_value(FunctionCallInfo fcinfo, int arg)
{
	Jsonb *value = PG_ARGISNULL(arg) ? NULL : PG_GETARG_JSONB_P(arg);
	char *text = value == NULL ? "" : JsonbToCString(NULL, &value->root, VARSIZE(value));

	return strcmp(text, "null") == 0 ? "" : text;
}

/* set_property(sheet_id, target, key, value, as_uid) */
Datum
sheet_set_property(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	int64 as_uid = catalog_arg_int64(fcinfo, 4, 0);
	uint32 rect[4] = {0, 0, SHEET_MAX_ROWS - 1, SHEET_MAX_COLS - 1};
	Property property = {0};
	char *key, *value, text[PROPERTY_TEXT_MAX];
	bool deep;
	Edit edit;

	(void) cells_arg_range(fcinfo, 1, rect); /* null: the sheet */
	key = catalog_arg_string(fcinfo, 2, "key");
	value = properties_arg_value(fcinfo, 3);
	property.target = (PropertyTarget){rect[0], rect[1], rect[2], rect[3]};
	property.key = (EditText){key, (uint32) strlen(key)};
	property.value = (EditText){value, (uint32) strlen(value)};
	if (!property_is_key(property.key))
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" cannot be the key of a property", key),
						errhint("A key has 1 to %d of the characters A-Z, a-z, 0-9, \"_\", \"-\" and \".\".",
								PROPERTY_MAX_KEY)));
	if (property.value.len > PROPERTY_MAX_VALUE)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the value of a property has at most %d bytes", PROPERTY_MAX_VALUE),
						errdetail("The value of \"%s\" has %u bytes.", key, property.value.len)));
	if (!property_value_is_bounded(property.value, &deep))
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 deep ? errmsg("the value of a property is nested at most %d deep", PROPERTY_MAX_DEPTH)
					  : errmsg("the numbers in the value of a property are below 1e%d", PROPERTY_MAX_POWER + 1)));
	property.uid = permission_require(sheet_id, as_uid, ROLE_EDITOR, false);
	edit = property_edit(&property, text);
	PG_RETURN_INT64(journal_edit(sheet_id, &edit, 1));
}
