/*
 * links.c - share links: SQL functions that create, list, change and revoke them, and let guests in.
 *
 * The row of a link (sheet.link) has a digest of its key. permission.c gives a guest, whose uid is -link_id, the role
 * of the link while it is valid. Edits of the sheet never write the row. Whoever changes a link publishes a change of
 * the sheet, so that gateways check its sessions again.
 *
 * Statements of gateways have digests of keys and hashes of passwords, since a server may log parameters. A gateway
 * hashes (scrypt) and compares passwords. One that SQL gives is stored as PostgreSQL's SCRAM-SHA-256 secret, with a
 * number of iterations that does not depend on the setting scram_iterations.
 */
#include "postgres.h"

#include "access/xact.h"
#include "api/functions/functions.h"
#include "api/scan/cells.h"
#include "api/scan/unchanged.h"
#include "catalog/pg_type.h"
#include "support/person_name.h"
#include "common/a1.h"
#include "compat.h"
#include "funcapi.h"
#include "journal/follow/follow.h"
#include "journal/journal.h"
#include "journal/store/history.h"
#include "journal/store/rect_store.h"
#include "journal/write/writer.h"
#include "permission/catalog.h"
#include "permission/permission.h"
#include "utils/builtins.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(sheet_create_link);
PG_FUNCTION_INFO_V1(sheet_links);
PG_FUNCTION_INFO_V1(sheet_has_link);
PG_FUNCTION_INFO_V1(sheet_change_link);
PG_FUNCTION_INFO_V1(sheet_revoke_link);
PG_FUNCTION_INFO_V1(sheet_enter_link);
PG_FUNCTION_INFO_V1(sheet_link_place);
PG_FUNCTION_INFO_V1(sheet_link_target);
PG_FUNCTION_INFO_V1(sheet_guest_left);
PG_FUNCTION_INFO_V1(sheet_count_link_uses);

#define LINK_KEY_CHARS	  22 /* of six bits */
#define LINK_LABEL_MAX	  100
#define LINK_GUEST_MAX	  50
#define LINK_PASSWORD_MAX 1024
#define LINK_HASH_PREFIX  "$scrypt$" /* of hashes that gateways make */
#define LINK_HASH_MAX	  255
#define LINK_ITERATIONS	  4096
#define LINK_SALT_BYTES	  16
#define LINK_RECT_CELLS	  100000
#define LINK_LEFT_MS(alias)                                                                                            \
	"CASE WHEN " alias "expires_at IS NOT NULL THEN greatest(ceil(extract(epoch FROM " alias                           \
	"expires_at - pg_catalog.clock_timestamp()) * 1000), 0)::int8 END"
#define LINKS_MAX 200 /* of a sheet, without those that were revoked */

/* Purging deletes the sheet's row first, so no link is inserted after that. */
static CatalogQuery links_insert = {
	"INSERT INTO sheet.link (sheet_id, digest, role, expires_at, rectangle, password, label, created_by, "
	"embed, index_ok) SELECT s.sheet_id, $2, $3, $4, $5, $6, coalesce($7, ''), $8, $9, $10 "
	"FROM sheet.sheet s WHERE s.sheet_id = $1 FOR KEY SHARE RETURNING link_id",
	{INT8OID, BYTEAOID, TEXTOID, TIMESTAMPTZOID, BOOLOID, TEXTOID, TEXTOID, INT8OID, TEXTOID, BOOLOID}};
static CatalogQuery links_label = {"UPDATE sheet.link SET label = 'Link ' || link_id WHERE link_id = $1", {INT8OID}};
/* All that were not revoked, and some that were. A sheet may have many more of these than others: planned for it. */
static CatalogQuery links_list = {
	"SELECT l.link_id, l.role, l.label, l.expires_at, "
	"CASE WHEN l.rectangle AND l.revoked_at IS NULL THEN (sheet.link_place(l.sheet_id, l.link_id)).ref END, l.password "
	"IS NOT NULL, "
	"CASE WHEN l.revoked_at IS NOT NULL THEN 'revoked' WHEN l.expires_at <= pg_catalog.clock_timestamp() THEN "
	"'expired' "
	"WHEN l.blocked THEN 'blocked' ELSE 'valid' END, l.uses, l.last_used, "
	"(SELECT a.name FROM sheet.account a WHERE a.uid = l.created_by), l.created_at, l.revoked_at, l.embed, l.index_ok "
	"FROM (SELECT * FROM sheet.link WHERE sheet_id = $1 ORDER BY revoked_at DESC NULLS FIRST LIMIT 400) l "
	"ORDER BY l.link_id DESC",
	{INT8OID},
	.by_values = true};
static CatalogQuery links_find = {"SELECT sheet_id, (revoked_at IS NOT NULL)::int::int8, rectangle::int::int8 "
								  "FROM sheet.link WHERE link_id = $1",
								  {INT8OID}};
static CatalogQuery links_change = {
	"UPDATE sheet.link SET role = coalesce($2, role), expires_at = nullif(coalesce($3, expires_at), 'infinity'), "
	"password = CASE WHEN $4 IS NULL THEN password ELSE nullif($4, '') END, "
	"generation = generation + ($4 IS NOT NULL)::int, label = coalesce($5, label), blocked = coalesce($6, blocked), "
	"embed = CASE WHEN $7 IS NULL THEN embed ELSE nullif($7, '') END, index_ok = coalesce($8, index_ok) "
	"WHERE link_id = $1 AND revoked_at IS NULL",
	{INT8OID, TEXTOID, TIMESTAMPTZOID, TEXTOID, TEXTOID, BOOLOID, TEXTOID, BOOLOID}};
static CatalogQuery links_check_embed = {"SELECT sheet.embed_is_valid($1)::int::int8", {TEXTOID}};
static CatalogQuery links_revoke = {
	"UPDATE sheet.link SET revoked_at = clock_timestamp() WHERE link_id = $1 AND revoked_at IS NULL", {INT8OID}};
/* The sheet is looked up in any case, so that a link that is not valid is not answered sooner. */
static CatalogQuery links_enter = {
	"SELECT l.link_id FROM sheet.link l, sheet.sheet s WHERE l.digest = $1 AND "
	"s.sheet_id = l.sheet_id AND s.trashed_at IS NULL AND (sheet.link_place(l.sheet_id, l.link_id)).ref IS DISTINCT "
	"FROM "
	"'' AND " LINK_IS_VALID,
	{BYTEAOID}};
static CatalogQuery links_guest = {
	"SELECT link_id, CASE WHEN NOT rectangle THEN sheet_id END, role, $2, generation, " LINK_LEFT_MS(
		"") ", password "
			"FROM sheet.link WHERE link_id = $1 AND " LINK_IS_VALID,
	{INT8OID, TEXTOID}};
static CatalogQuery links_left = {"SELECT CASE WHEN " LINK_IS_VALID
								  " THEN " LINK_LEFT_MS("") " ELSE 0 END "
															"FROM sheet.link WHERE link_id = -$1",
								  {INT8OID}};
static CatalogQuery links_target = {
	"SELECT l.sheet_id, p.*, l.role FROM sheet.link l, sheet.sheet s, LATERAL sheet.link_place(l.sheet_id, l.link_id) "
	"p "
	"WHERE l.link_id = -$1 AND l.rectangle AND s.sheet_id = l.sheet_id AND s.trashed_at IS NULL AND p.ref <> '' "
	"AND " LINK_IS_VALID,
	{INT8OID}};
static CatalogQuery links_trashed = {"SELECT CASE WHEN s.trashed_at IS NOT NULL THEN s.sheet_id ELSE 0 END "
									 "FROM sheet.link l JOIN sheet.sheet s USING (sheet_id) "
									 "WHERE l.link_id = -$1 AND l.rectangle",
									 {INT8OID}};
/* What the revocation, or the last ones, have left. Bounded, whatever that is; edits do not read it. Planned for the
 * sheet: it may have many more revoked links than others. */
static CatalogQuery links_delete_rects = {
	"DELETE FROM sheet.link_rect d WHERE d.ctid = ANY (ARRAY(SELECT r.ctid FROM (SELECT link_id FROM sheet.link "
	"WHERE sheet_id = $1 AND revoked_at IS NOT NULL ORDER BY revoked_at DESC LIMIT 20) l, LATERAL "
	"(SELECT r.ctid FROM sheet.link_rect r WHERE r.sheet_id = $1 AND r.link_id = l.link_id OFFSET 0) r LIMIT 1000))",
	{INT8OID},
	.by_values = true};
static CatalogQuery links_sheet = {"SELECT sheet_id FROM sheet.sheet WHERE sheet_id = $1 FOR NO KEY UPDATE", {INT8OID}};
static CatalogQuery links_kept = {"SELECT count(*) FROM sheet.link WHERE sheet_id = $1 AND revoked_at IS NULL",
								  {INT8OID}};
/* Nobody waits for whoever changes the link, or counts, too. */
static CatalogQuery links_count = {"UPDATE sheet.link SET uses = uses + $2, last_used = now() WHERE link_id = "
								   "(SELECT link_id FROM sheet.link WHERE link_id = $1 FOR NO KEY UPDATE SKIP LOCKED)",
								   {INT8OID, INT8OID}};

/* ---- arguments ---- */

char *
links_random_key(void)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	unsigned char bytes[LINK_KEY_CHARS];
	char *key = palloc(LINK_KEY_CHARS + 1);

	if (!pg_strong_random(bytes, sizeof(bytes)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random key")));
	for (int i = 0; i < LINK_KEY_CHARS; i++)
		key[i] = alphabet[bytes[i] & 63];
	key[LINK_KEY_CHARS] = '\0';
	return key;
}

static void
links_check_role(const char *role)
{
	if (strcmp(role, "viewer") != 0 && strcmp(role, "commenter") != 0 && strcmp(role, "editor") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("\"%s\" cannot be shared", role),
						errhint("The roles are viewer, commenter and editor.")));
}

/* A name in the form in which it is shown. */
static char *
links_check_person(const char *what, char *name, int max)
{
	uint32_t character;
	const char *problem;

	name = catalog_normal_name(name);
	catalog_check_name(what, name, max);
	problem = person_name_problem(name, strlen(name), &character);
	if (problem != NULL)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the %s must not contain %s", what, problem),
						errdetail("It contains U+%04X.", character)));
	return name;
}

static NullableDatum
links_arg_label(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		return CATALOG_NULL;
	return CATALOG_TEXT(links_check_person("label", text_to_cstring(PG_GETARG_TEXT_PP(arg)), LINK_LABEL_MAX));
}

/* The end of a link lies in the future. Null, and infinity: none. */
static NullableDatum
links_arg_end(FunctionCallInfo fcinfo, int arg)
{
	TimestampTz end;

	if (PG_ARGISNULL(arg))
		return CATALOG_NULL;
	end = PG_GETARG_TIMESTAMPTZ(arg);
	if (end <= GetCurrentTimestamp())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("the end of a link must be in the future"),
				 errdetail("It is %s.", timestamptz_to_str(end)), errhint("sheet.revoke_link() ends a link at once.")));
	return fcinfo->args[arg];
}

static char *
links_scram_secret(const char *password)
{
	char salt[LINK_SALT_BYTES];

	if (!pg_strong_random(salt, sizeof(salt)))
		ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("could not generate a random salt")));
	return compat_scram_secret(salt, sizeof(salt), LINK_ITERATIONS, password);
}

static bool
links_is_hash(const char *password)
{
	return strncmp(password, LINK_HASH_PREFIX, strlen(LINK_HASH_PREFIX)) == 0 && strlen(password) <= LINK_HASH_MAX;
}

/* Returns what is stored for a password: the hash of one in plain text; one that a gateway has hashed, and an empty
 * one, as they are. */
static NullableDatum
links_arg_password(FunctionCallInfo fcinfo, int arg)
{
	char *password;

	if (PG_ARGISNULL(arg))
		return CATALOG_NULL;
	password = text_to_cstring(PG_GETARG_TEXT_PP(arg));
	if (strlen(password) > LINK_PASSWORD_MAX)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a password must have at most %d bytes", LINK_PASSWORD_MAX)));
	if (password[0] != '\0' && !(permission_is_gateway_role(GetUserId()) && links_is_hash(password)))
		password = links_scram_secret(password);
	return CATALOG_TEXT(password);
}

/* Pages that may show the published view in a frame; "": none. */
static NullableDatum
links_arg_embed(FunctionCallInfo fcinfo, int arg)
{
	int64 valid = 0;

	if (PG_ARGISNULL(arg) || VARSIZE_ANY_EXHDR(PG_GETARG_TEXT_PP(arg)) == 0)
		return fcinfo->args[arg];
	if (!catalog_find_int64(&links_check_embed, &fcinfo->args[arg], true, &valid) || valid == 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("embed is not a list of pages"),
						errdetail("It is a list of at most 1000 bytes, with one space between its sources, or *."),
						errhint("A source is a scheme and a host: https://example.org, https://*.example.org:8443.")));
	return fcinfo->args[arg];
}

/* Guests of a rectangle read it, or write in it too (api/programs/link_write.c). There are no comments in it. */
static void
links_check_part_role(const char *role)
{
	if (strcmp(role, "viewer") != 0 && strcmp(role, "editor") != 0)
		ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
						errmsg("a link to a rectangle is for viewers or editors, not for a %s", role)));
}

/* False: the link opens the sheet. */
static bool
links_arg_rect(FunctionCallInfo fcinfo, int arg, const char *role, LinkRect *rect)
{
	uint32 bounds[4];

	if (!cells_arg_range(fcinfo, arg, bounds))
		return false;
	links_check_part_role(role);
	if ((uint64) (bounds[2] - bounds[0] + 1) * (bounds[3] - bounds[1] + 1) > LINK_RECT_CELLS)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("the rectangle of a link has at most %d cells", LINK_RECT_CELLS)));
	*rect = (LinkRect){.row0 = bounds[0], .col0 = bounds[1], .row1 = bounds[2], .col1 = bounds[3]};
	return true;
}

/* A change of the link, for gateways: its sessions are checked again, and its label is read again. By the id that
 * gateways know the guests by (ws/cache/changes.h). */
static void
links_register_change(int64 sheet_id, int64 link_id)
{
	follow_register_status(sheet_id);
	follow_register_status(PG_INT64_MIN + link_id);
}

/* Caller must hold the sheet lock: no other transaction moves the cells of the rectangle meanwhile. */
static void
links_store_rect(int64 sheet_id, int64 link_id, LinkRect *rect)
{
	HistoryLast last;
	Snapshot snapshot;

	snapshot = RegisterSnapshot(GetLatestSnapshot());
	history_last_edit(sheet_id, snapshot, &last);
	UnregisterSnapshot(snapshot);
	rect->link_id = link_id;
	rect->seq = last.last_seq;
	rect_store_insert(sheet_id, rect);
	CommandCounterIncrement();
}

/* ---- for owners ---- */

/*
 * Rectangles of links move with each insertion of rows, so a sheet has few links. Creations for a sheet follow each
 * other by its row, so that the bound is exact: the count has a later snapshot.
 */
static void
links_require_room(int64 sheet_id)
{
	int64 count = 0;

	if (catalog_execute(&links_sheet, &CATALOG_INT64(sheet_id)) == 0)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	(void) catalog_find_int64(&links_kept, &CATALOG_INT64(sheet_id), false, &count);
	if (count >= LINKS_MAX)
		ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
						errmsg("sheet " INT64_FORMAT " has %d links, which is the maximum", sheet_id, LINKS_MAX),
						errhint("Revoke those that are not needed with sheet.revoke_link().")));
}

/* create_link(sheet_id, role, expires, ref, password, label, embed, index_ok, if_seq, as_uid) */
Datum
sheet_create_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0);
	char *role = catalog_arg_string(fcinfo, 1, "role"), *key = links_random_key();
	NullableDatum args[10] = {CATALOG_INT64(sheet_id), CATALOG_DIGEST(CStringGetTextDatum(key)), fcinfo->args[1]};
	Datum values[2];
	bool nulls[2] = {false, false};
	LinkRect rect = {0};
	int64 link_id;

	links_check_role(role);
	args[3] = links_arg_end(fcinfo, 2);
	if (!args[3].isnull && TIMESTAMP_IS_NOEND(DatumGetTimestampTz(args[3].value)))
		args[3] = CATALOG_NULL;
	args[4] = CATALOG_DATUM(BoolGetDatum(links_arg_rect(fcinfo, 3, role, &rect)));
	args[6] = links_arg_label(fcinfo, 5);
	args[7] = CATALOG_INT64(permission_require(sheet_id, catalog_arg_int64(fcinfo, 9, 0), ROLE_OWNER, false));
	args[5] = links_arg_password(fcinfo, 4);
	if (!args[5].isnull && VARSIZE_ANY_EXHDR(DatumGetPointer(args[5].value)) == 0)
		args[5] = CATALOG_NULL;
	args[8] = links_arg_embed(fcinfo, 6);
	if (!args[8].isnull && VARSIZE_ANY_EXHDR(DatumGetPointer(args[8].value)) == 0)
		args[8] = CATALOG_NULL;
	args[9] = CATALOG_DATUM(BoolGetDatum(!PG_ARGISNULL(7) && PG_GETARG_BOOL(7)));
	if (DatumGetBool(args[4].value))
		journal_lock_sheet(sheet_id); /* before the sheet's row, as sheet.purge() does */
	links_require_room(sheet_id);
	if (DatumGetBool(args[4].value))
	{
		if (!PG_ARGISNULL(8))
			unchanged_require_places(sheet_id, PG_GETARG_INT64(8));
		catalog_execute(&links_delete_rects, args); /* which their revocations have left */
	}
	if (!catalog_find_int64(&links_insert, args, false, &link_id))
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("sheet " INT64_FORMAT " does not exist", sheet_id)));
	if (DatumGetBool(args[4].value))
		links_store_rect(sheet_id, link_id, &rect);
	if (args[6].isnull)
		catalog_execute(&links_label, &CATALOG_INT64(link_id));
	follow_register_status(sheet_id); /* values of formulas depend on who may edit */
	values[0] = Int64GetDatum(link_id);
	values[1] = CStringGetTextDatum(key);
	return catalog_return_row(fcinfo, values, nulls);
}

/* links(sheet_id, as_uid) */
Datum
sheet_links(PG_FUNCTION_ARGS)
{
	permission_require(catalog_arg_sheet(fcinfo, 0), catalog_arg_int64(fcinfo, 1, 0), ROLE_OWNER, true);
	return catalog_return_rows(fcinfo, &links_list, fcinfo->args, true);
}

/* has_link(sheet_id, link_id, as_uid) */
Datum
sheet_has_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id = catalog_arg_sheet(fcinfo, 0), of_sheet = 0;

	catalog_require_arg(fcinfo, 1, "link");
	permission_require_gateway();
	permission_require(sheet_id, catalog_arg_int64(fcinfo, 2, 0), ROLE_OWNER, true);
	PG_RETURN_BOOL(catalog_find_int64(&links_find, &fcinfo->args[1], true, &of_sheet) && of_sheet == sheet_id);
}

/*
 * Returns the sheet of the link, of which the caller is an owner. Others must not learn the ids of sheets. *revoked may
 * be NULL: then a revoked link is an error.
 */
static int64
links_require_owner(int64 link_id, int64 as_uid, bool *revoked, bool *rectangle)
{
	CatalogScope scope;
	bool found, ended = false;
	int64 sheet_id = 0;

	catalog_begin(&scope);
	found = catalog_run(&links_find, &CATALOG_INT64(link_id), false) > 0;
	if (found)
	{
		sheet_id = catalog_int64(1, 0);
		ended = catalog_int64(2, 0) == 1;
		*rectangle = catalog_int64(3, 0) == 1;
	}
	catalog_end(&scope);
	if (!found || permission_role(sheet_id, as_uid) < ROLE_OWNER)
		ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT), errmsg("link " INT64_FORMAT " does not exist", link_id),
						errdetail("Or it is of a sheet of somebody else.")));
	permission_require(sheet_id, as_uid, ROLE_OWNER, true);
	if (ended && revoked == NULL)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("link " INT64_FORMAT " has been revoked", link_id),
						errhint("Create another link with sheet.create_link().")));
	if (revoked != NULL)
		*revoked = ended;
	return sheet_id;
}

/* change_link(link_id, role, expires, password, label, blocked, embed, index_ok, as_uid) */
Datum
sheet_change_link(PG_FUNCTION_ARGS)
{
	NullableDatum args[8] = {fcinfo->args[0], fcinfo->args[1]};
	int64 sheet_id;
	bool rectangle;

	catalog_require_arg(fcinfo, 0, "link");
	if (!PG_ARGISNULL(1))
		links_check_role(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	args[2] = links_arg_end(fcinfo, 2);
	args[4] = links_arg_label(fcinfo, 4);
	args[5] = fcinfo->args[5];
	args[6] = links_arg_embed(fcinfo, 6);
	args[7] = fcinfo->args[7];
	sheet_id = links_require_owner(PG_GETARG_INT64(0), catalog_arg_int64(fcinfo, 8, 0), NULL, &rectangle);
	if (rectangle && !PG_ARGISNULL(1))
		links_check_part_role(text_to_cstring(PG_GETARG_TEXT_PP(1)));
	args[3] = links_arg_password(fcinfo, 3);
	if (catalog_execute(&links_change, args) == 0)
		ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						errmsg("link " INT64_FORMAT " has been revoked", PG_GETARG_INT64(0))));
	links_register_change(sheet_id, PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/*
 * revoke_link(link_id, as_uid). Revoking it again changes nothing. Nobody can hold up a revocation: while another
 * transaction has the sheet lock, and may be about to move the rectangle, its rows are left, as are those beyond the
 * first thousand. The link opens nothing nevertheless. The next revocations and creations of such links of the sheet
 * remove them, or its purge.
 */
Datum
sheet_revoke_link(PG_FUNCTION_ARGS)
{
	int64 sheet_id;
	bool revoked, rectangle;

	catalog_require_arg(fcinfo, 0, "link");
	sheet_id = links_require_owner(PG_GETARG_INT64(0), catalog_arg_int64(fcinfo, 1, 0), &revoked, &rectangle);
	if (rectangle && writer_try_lock_sheet(sheet_id)) /* before the link's row, as sheet.create_link() does */
	{
		catalog_execute(&links_revoke, fcinfo->args);
		catalog_execute(&links_delete_rects, &CATALOG_INT64(sheet_id));
	}
	else
		catalog_execute(&links_revoke, fcinfo->args);
	links_register_change(sheet_id, PG_GETARG_INT64(0));
	PG_RETURN_VOID();
}

/* ---- for gateways ---- */

/* enter_link(digest, name) */
Datum
sheet_enter_link(PG_FUNCTION_ARGS)
{
	char *name = catalog_arg_string(fcinfo, 1, "name");
	NullableDatum args[2] = {fcinfo->args[0]};
	int64 link_id = 0;

	catalog_require_arg(fcinfo, 0, "digest");
	permission_require_gateway();
	name = links_check_person("name", name, LINK_GUEST_MAX);
	(void) catalog_find_int64(&links_enter, args, true, &link_id);
	args[0] = CATALOG_INT64(link_id);
	args[1] = CATALOG_TEXT(psprintf("%s%s", name, GUEST_SUFFIX));
	return catalog_return_rows(fcinfo, &links_guest, args, true);
}

/* link_place(sheet_id, link_id) */
Datum
sheet_link_place(PG_FUNCTION_ARGS)
{
	char name[A1_RANGE_MAX] = "";
	Datum values[5] = {0};
	bool nulls[5] = {true, true, true, true, true};
	LinkRect rect;

	catalog_require_arg(fcinfo, 1, "link_id");
	if (rect_store_find(catalog_arg_sheet(fcinfo, 0), PG_GETARG_INT64(1), PG_INT64_MAX, GetActiveSnapshot(), &rect))
	{
		if (!rect.lost)
			a1_format_range(name, &(A1Range){rect.row0, rect.col0, rect.row1, rect.col1});
		memset(nulls, rect.lost, sizeof(nulls));
		nulls[0] = false;
		values[0] = CStringGetTextDatum(name);
		values[1] = Int32GetDatum((int32) rect.row0);
		values[2] = Int32GetDatum((int32) rect.col0);
		values[3] = Int32GetDatum((int32) (rect.row1 - rect.row0 + 1));
		values[4] = Int32GetDatum((int32) (rect.col1 - rect.col0 + 1));
	}
	return catalog_return_row(fcinfo, values, nulls);
}

/* link_target(as_uid) */
Datum
sheet_link_target(PG_FUNCTION_ARGS)
{
	int64 trashed = 0;

	permission_require_gateway();
	catalog_require_args(fcinfo);
	if (!catalog_find_int64(&links_trashed, fcinfo->args, true, &trashed))
		ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("the link is not to a part of a sheet")));
	if (trashed != 0)
		permission_deny_trashed(trashed);
	return catalog_return_rows(fcinfo, &links_target, fcinfo->args, true);
}

/* guest_left(uid) */
Datum
sheet_guest_left(PG_FUNCTION_ARGS)
{
	CatalogScope scope;
	int64 left = 0;

	permission_require_gateway();
	if (!permission_is_guest(PG_GETARG_INT64(0)))
		PG_RETURN_NULL();
	catalog_begin(&scope);
	if (catalog_run(&links_left, fcinfo->args, true) > 0)
		left = catalog_int64(1, -1);
	catalog_end(&scope);
	if (left < 0)
		PG_RETURN_NULL();
	PG_RETURN_INT64(left);
}

/* count_link_uses(link_id, uses) */
Datum
sheet_count_link_uses(PG_FUNCTION_ARGS)
{
	permission_require_gateway();
	catalog_execute(&links_count, fcinfo->args);
	PG_RETURN_VOID();
}
