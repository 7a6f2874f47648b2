/*
 * test_v2.c - the codec of protocol v2 against tests/vectors/v2.json, which gateway/web/test/v2/codec.test.ts reads as
 * well: what clients send means the same in both forms, what the gateway sends is written to the byte, what is
 * malformed is refused, and a message that ends too early is nothing.
 */
#include "ws/wire/v2.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tap.h"

#define VECTORS "../vectors/v2.json"

/* ---- the vectors ---- */

static char *
read_file(const char *path)
{
	FILE *file = fopen(path, "rb");
	char *text = malloc(1 << 20);
	size_t len;

	if (file == NULL || text == NULL)
	{
		perror(path);
		exit(1);
	}
	len = fread(text, 1, (1 << 20) - 1, file);
	text[len] = '\0';
	fclose(file);
	return text;
}

static const char *
member(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* Exactly as many bytes as there are, so that the sanitizer sees who reads on. */
static uint8_t *
from_hex(const char *hex, size_t *len)
{
	uint8_t *bytes;

	*len = strlen(hex) / 2;
	bytes = malloc(*len > 0 ? *len : 1);
	for (size_t i = 0; i < *len; i++)
		sscanf(hex + 2 * i, "%2hhx", &bytes[i]);
	return bytes;
}

static const char *
to_hex(const char *data, size_t len)
{
	static char hex[8192];

	for (size_t i = 0; i < len && i < sizeof(hex) / 2 - 1; i++)
		sprintf(hex + 2 * i, "%02x", (unsigned char) data[i]);
	return hex;
}

/* ---- what clients send ---- */

static const char *
read_json(const char *text, size_t len, V2Message *message, char **memory)
{
	char *copy = malloc(len > 0 ? len : 1);
	char *scratch = malloc(V2_SCRATCH(len));
	const char *wrong;

	memcpy(copy, text, len);
	wrong = v2_read_json(copy, len, scratch, message);
	memory[0] = copy;
	memory[1] = scratch;
	return wrong;
}

static void
dump_edits(Buf *to, const V2Message *message)
{
	EditReader reader;
	Edit edit;

	edit_reader_init_edits(&reader, message->edits, message->edits_len, message->count);
	while (edit_read(&reader, &edit) == EDIT_OK)
	{
		buf_printf(to, "(%d %u %u ", edit.kind, edit.row, edit.col);
		buf_put_json(to, edit.content.data, edit.content.len);
		if (edit.style.data != NULL)
			buf_put_json(to, edit.style.data, edit.style.len);
		buf_puts(to, ")");
	}
}

/* All that a message says, to be compared. */
static Buf
dump(const V2Message *m)
{
	Buf to = {NULL, 0, 0};

	buf_printf(&to, "%d %llu %.*s %llu %llu %llu %llu [%llu %llu %llu %llu] %llu %llu %llu %llu %llu %llu %u %s ",
			   m->type, (unsigned long long) m->version, (int) m->token.len, m->token.len > 0 ? m->token.data : "",
			   (unsigned long long) m->client, (unsigned long long) m->acked, (unsigned long long) m->since,
			   (unsigned long long) m->id, (unsigned long long) m->row, (unsigned long long) m->col,
			   (unsigned long long) m->to_row, (unsigned long long) m->to_col, (unsigned long long) m->n,
			   (unsigned long long) m->nacks, (unsigned long long) m->base, (unsigned long long) m->seen,
			   (unsigned long long) m->uid, (unsigned long long) m->wait, m->count, v2_reason_names[m->reason]);
	buf_printf(&to, "%u %u [%u %u %u %u]", m->bad_row, m->bad_col, m->rect[0], m->rect[1], m->rect[2], m->rect[3]);
	if (m->count > 0)
		dump_edits(&to, m);
	return to;
}

static void
check_client(const cJSON *vector)
{
	const char *json = member(vector, "json"), *hex = member(vector, "hex"), *name = member(vector, "name");
	V2Message a, b;
	char *memory[2];
	size_t len;
	uint8_t *bytes = from_hex(hex, &len);
	const char *wrong_json = read_json(json, strlen(json), &a, memory);
	const char *wrong_binary = v2_read_binary(bytes, len, &b);
	Buf dump_a = dump(&a), dump_b = dump(&b);

	TAP_OK(wrong_json == NULL && wrong_binary == NULL && dump_a.len == dump_b.len &&
			   memcmp(dump_a.data, dump_b.data, dump_a.len) == 0,
		   "%s: the same in both forms (%s, %s) %.*s | %.*s", name, wrong_json ? wrong_json : "good",
		   wrong_binary ? wrong_binary : "good", (int) dump_a.len, dump_a.data, (int) dump_b.len, dump_b.data);
	buf_free(&dump_a);
	buf_free(&dump_b);
	free(memory[0]);
	free(memory[1]);
	free(bytes);
}

/* No beginning of a message is a message. */
static void
check_truncation(const cJSON *vector)
{
	const char *json = member(vector, "json"), *hex = member(vector, "hex");
	size_t len, accepted = 0, json_len = strlen(json);
	uint8_t *bytes = from_hex(hex, &len);
	V2Message message;

	while (json_len > 0 && strchr(" \t\n", json[json_len - 1]) != NULL)
		json_len--;
	for (size_t i = 0; i < len; i++)
	{
		uint8_t *part = malloc(i > 0 ? i : 1);

		memcpy(part, bytes, i);
		accepted += v2_read_binary(part, i, &message) == NULL;
		free(part);
	}
	for (size_t i = 0; i < json_len; i++)
	{
		char *memory[2];

		accepted += read_json(json, i, &message, memory) == NULL;
		free(memory[0]);
		free(memory[1]);
	}
	TAP_OK(accepted == 0, "%s: none of its %zu beginnings is a message", member(vector, "name"), len + json_len);
	free(bytes);
}

/* Reads a vector that has one of the forms. */
static const char *
read_either(const cJSON *vector, V2Message *message)
{
	const char *json = member(vector, "json");
	const char *wrong;

	if (json != NULL)
	{
		char *memory[2];

		wrong = read_json(json, strlen(json), message, memory);
		free(memory[0]);
		free(memory[1]);
	}
	else
	{
		size_t len;
		uint8_t *bytes = from_hex(member(vector, "hex"), &len);

		wrong = v2_read_binary(bytes, len, message);
		free(bytes);
	}
	return wrong;
}

static void
check_malformed(const cJSON *vector)
{
	V2Message message;
	const char *wrong = read_either(vector, &message);
	const char *json = member(vector, "json");

	TAP_OK(wrong != NULL, "malformed: %s%s (%s)", json ? "" : "binary ", json ? json : member(vector, "hex"),
		   wrong ? wrong : "accepted");
}

static void
check_refused(const cJSON *vector)
{
	V2Message message;
	const char *wrong = read_either(vector, &message);

	TAP_OK(wrong == NULL && strcmp(v2_reason_names[message.reason], member(vector, "reason")) == 0,
		   "%s: read, and refused as %s (%s, %s)", member(vector, "name"), member(vector, "reason"),
		   wrong ? wrong : "good", v2_reason_names[message.reason]);
}

/* Operations that are too large for a file of vectors. */
static void
check_sizes(void)
{
	V2Message message;
	Buf text = {NULL, 0, 0};
	char *memory[2];
	const char *wrong;

	for (int chars = SHEET_MAX_CHARS; chars <= SHEET_MAX_CHARS + 1; chars++)
	{
		text.len = 0;
		buf_puts(&text, "{\"t\":\"op\",\"n\":1,\"edits\":[[0,0,\"");
		for (int i = 0; i < chars; i++)
			buf_puts(&text, "\xe4\xbd\xa0");
		buf_puts(&text, "\"]]}");
		wrong = read_json(text.data, text.len, &message, memory);
		TAP_OK(wrong == NULL && message.reason == (chars > SHEET_MAX_CHARS ? V2_REASON_SIZE : V2_REASON_NONE),
			   "a content of %d characters is %s", chars, chars > SHEET_MAX_CHARS ? "refused" : "taken");
		free(memory[0]);
		free(memory[1]);
	}
	for (int count = V2_MAX_VALUES; count <= V2_MAX_VALUES + 1; count++)
	{
		text.len = 0;
		buf_puts(&text, "{\"t\":\"calc\",\"seq\":1,\"cells\":[");
		for (int i = 0; i < count; i++)
			buf_puts(&text, i > 0 ? ",[0,0,\"\"]" : "[0,0,\"\"]");
		buf_puts(&text, "]}");
		wrong = read_json(text.data, text.len, &message, memory);
		TAP_OK((wrong != NULL) == (count > V2_MAX_VALUES), "%d computed values are %s", count,
			   wrong != NULL ? wrong : "taken");
		free(memory[0]);
		free(memory[1]);
	}
	for (int count = V2_MAX_OP_EDITS; count <= V2_MAX_OP_EDITS + 1; count++)
	{
		text.len = 0;
		buf_puts(&text, "{\"t\":\"op\",\"n\":1,\"edits\":[");
		for (int i = 0; i < count; i++)
			buf_puts(&text, i > 0 ? ",[0,0]" : "[0,0]");
		buf_puts(&text, "]}");
		wrong = read_json(text.data, text.len, &message, memory);
		TAP_OK(wrong == NULL && (int) message.count == count &&
				   message.reason == (count > V2_MAX_OP_EDITS ? V2_REASON_SIZE : V2_REASON_NONE),
			   "an operation of %d edits is %s", count, count > V2_MAX_OP_EDITS ? "refused" : "taken");
		free(memory[0]);
		free(memory[1]);
	}
	buf_free(&text);
}

/* ---- what the gateway sends ---- */

static uint64_t
number(const cJSON *object, const char *name)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

	return item != NULL ? (uint64_t) item->valuedouble : 0; /* a lock of a cell has no toRow */
}

static uint64_t
at(const cJSON *list, int i)
{
	return (uint64_t) cJSON_GetArrayItem(list, i)->valuedouble;
}

static bool
flag(const cJSON *object, const char *name)
{
	return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static unsigned
word(const cJSON *object, const char *name, const char *const *words, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
	{
		if (strcmp(member(object, name), words[i]) == 0)
			return i;
	}
	abort();
}

/* A structure edit, whose kind is the item's nth value. */
static Edit
change_of(const cJSON *item, int n, char *text)
{
	unsigned kind = 0;
	LineChange change;

	while (strcmp(v2_change_names[kind], cJSON_GetArrayItem(item, n)->valuestring) != 0)
		kind++;
	change.rows = edit_is_of_rows((EditKind) (EDIT_INSERT_ROWS + kind));
	change.insert = kind % 2 == 0;
	change.at = (uint32_t) at(item, n + 1);
	change.n = (uint32_t) at(item, n + 2);
	return line_change_edit(&change, n > 0 ? (uint64_t) at(item, 0) : 0, text);
}

/* The edits of a message, in the codec's form. */
static Buf
edits_of(const cJSON *list, bool with_uid, uint32_t *count)
{
	Buf to = {NULL, 0, 0};
	EditWriter writer;
	const cJSON *item;

	buf_reserve(&to, 65536);
	edit_write_edits(&writer, (uint8_t *) to.data);
	*count = (uint32_t) cJSON_GetArraySize(list);
	cJSON_ArrayForEach(item, list)
	{
		int n = with_uid ? 1 : 0;
		int size = cJSON_GetArraySize(item);

		if (cJSON_IsString(cJSON_GetArrayItem(item, n)))
		{
			char text[LINE_CHANGE_TEXT];
			Edit change = change_of(item, n, text);

			edit_write(&writer, &change);
			continue;
		}
		const cJSON *content = size > n + 2 ? cJSON_GetArrayItem(item, n + 2) : NULL;
		char *style = size > n + 3 ? cJSON_PrintUnformatted(cJSON_GetArrayItem(item, n + 3)) : NULL;
		Edit edit = {.kind = content == NULL		 ? EDIT_RESIZE
							 : cJSON_IsNull(content) ? EDIT_STYLE
													 : EDIT_SET,
					 .uid = with_uid ? at(item, 0) : 0,
					 .row = (uint32_t) at(item, n),
					 .col = (uint32_t) at(item, n + 1),
					 .content = {"", 0}};

		if (edit.kind == EDIT_SET)
			edit.content = (EditText){content->valuestring, (uint32_t) strlen(content->valuestring)};
		if (style != NULL)
			edit.style = (EditText){style, strcmp(style, "null") == 0 ? 0 : (uint32_t) strlen(style)};
		edit_write(&writer, &edit);
		free(style);
	}
	to.len = (size_t) ((char *) writer.pos - to.data);
	return to;
}

static V2Lock
range_of(const cJSON *item)
{
	return (V2Lock){{(uint32_t) at(item, 0), (uint32_t) at(item, 1), (uint32_t) at(item, 2), (uint32_t) at(item, 3)},
					true,
					at(item, 4),
					at(item, 5)};
}

static void
put_hello(Buf *to, V2Encoding encoding, const cJSON *m)
{
	static const char *const roles[] = {"viewer", "commenter", "editor", "owner"};
	const cJSON *peers = cJSON_GetObjectItem(m, "peers"), *locks = cJSON_GetObjectItem(m, "locks");
	const cJSON *ranges = cJSON_GetObjectItem(m, "ranges");
	V2Peer peer[4];
	V2Lock lock[4];
	V2Hello hello = {
		.version = number(m, "v"),
		.session = number(m, "session"),
		.uid = number(m, "uid"),
		.name = member(m, "name"),
		.role = (V2Role) word(m, "role", roles, 4),
		.seq = number(m, "seq"),
		.epoch = number(m, "epoch"),
		.rows = (uint32_t) number(m, "rows"),
		.cols = (uint32_t) number(m, "cols"),
		.landed = number(m, "landed"),
		.resumed = flag(m, "resumed"),
		.retention = number(m, "retention"),
		.lease = number(m, "lease"),
		.max_bytes = number(m, "maxBytes"),
		.peers = peer,
		.peer_count = (uint32_t) cJSON_GetArraySize(peers),
		.locks = lock,
	};

	for (uint32_t i = 0; i < hello.peer_count; i++)
	{
		const cJSON *item = cJSON_GetArrayItem(peers, (int) i);

		peer[i] = (V2Peer){at(item, 0), at(item, 1), cJSON_GetArrayItem(item, 2)->valuestring};
	}
	/* The ranges first: the gateway's list has them in any order. */
	for (int i = 0; i < cJSON_GetArraySize(ranges); i++)
		lock[hello.lock_count++] = range_of(cJSON_GetArrayItem(ranges, i));
	for (int i = 0; i < cJSON_GetArraySize(locks); i++)
	{
		const cJSON *item = cJSON_GetArrayItem(locks, i);
		uint32_t row = (uint32_t) at(item, 0), col = (uint32_t) at(item, 1);

		lock[hello.lock_count++] = (V2Lock){{row, col, row, col}, false, at(item, 2), at(item, 3)};
	}
	v2_put_hello(to, encoding, &hello);
}

static void
put_cells(Buf *to, V2Encoding encoding, const cJSON *m, const char *type)
{
	bool logged = strcmp(type, "edits") == 0;
	uint32_t count;
	Buf edits = edits_of(cJSON_GetObjectItem(m, logged ? "edits" : "cells"), logged, &count);
	V2Block block = {.seq = number(m, "seq"), .more = flag(m, "more")};

	if (strcmp(type, "calc") == 0)
		v2_put_calc(to, encoding, number(m, "session"), block.seq, edits.data, edits.len, count);
	else if (logged)
		v2_put_edits(to, encoding, block.seq, block.more, edits.data, edits.len, count);
	else
	{
		block.id = number(m, "id");
		block.row = (uint32_t) number(m, "row");
		block.col = (uint32_t) number(m, "col");
		block.to_row = (uint32_t) number(m, "toRow");
		block.to_col = (uint32_t) number(m, "toCol");
		v2_put_block(to, encoding, &block, edits.data, edits.len, count);
	}
	buf_free(&edits);
}

static void
put_cursors(Buf *to, V2Encoding encoding, const cJSON *m)
{
	const cJSON *list = cJSON_GetObjectItem(m, "cursors");
	V2Cursor cursors[4];
	int n = cJSON_GetArraySize(list);

	for (int i = 0; i < n; i++)
	{
		const cJSON *item = cJSON_GetArrayItem(list, i);

		cursors[i] = (V2Cursor){at(item, 0), (uint32_t) at(item, 1), (uint32_t) at(item, 2), (uint32_t) at(item, 3),
								(uint32_t) at(item, 4)};
	}
	v2_put_cursors(to, encoding, cursors, (uint32_t) n);
}

static void
put_server(Buf *to, V2Encoding encoding, const cJSON *m)
{
	static const char *const roles[] = {"viewer", "commenter", "editor", "owner"};
	static const char *const kinds[] = {"commit", "rollback"};
	const char *type = member(m, "t");

	if (strcmp(type, "hello") == 0)
		put_hello(to, encoding, m);
	else if (strcmp(type, "edits") == 0 || strcmp(type, "block") == 0 || strcmp(type, "calc") == 0)
		put_cells(to, encoding, m, type);
	else if (strcmp(type, "changed") == 0)
		v2_put_notice(to, encoding, V2_NOTICE_CHANGED);
	else if (strcmp(type, "reminders") == 0)
		v2_put_notice(to, encoding, V2_NOTICE_REMINDERS);
	else if (strcmp(type, "book") == 0)
		v2_put_notice(to, encoding, V2_NOTICE_BOOK);
	else if (strcmp(type, "ack") == 0)
		v2_put_ack(to, encoding, number(m, "n"), number(m, "seq"));
	else if (strcmp(type, "nack") == 0)
		v2_put_nack(to, encoding, number(m, "n"), (V2Reason) word(m, "reason", v2_reason_names, V2_REASONS),
					(uint32_t) number(m, "row"), (uint32_t) number(m, "col"), flag(m, "block"));
	else if (strcmp(type, "lock") == 0 || strcmp(type, "range") == 0)
		v2_put_lock(to, encoding,
					&(V2Lock){{(uint32_t) number(m, "row"), (uint32_t) number(m, "col"), (uint32_t) number(m, "toRow"),
							   (uint32_t) number(m, "toCol")},
							  strcmp(type, "range") == 0,
							  number(m, "session"),
							  number(m, "uid")});
	else if (strcmp(type, "blocked") == 0)
		v2_put_blocked(to, encoding,
					   &(V2Blocked){{(uint32_t) number(m, "row"), (uint32_t) number(m, "col"),
									 (uint32_t) number(m, "toRow"), (uint32_t) number(m, "toCol")},
									(V2Reason) word(m, "reason", v2_reason_names, V2_REASONS),
									flag(m, "waits"),
									(uint32_t) number(m, "atRow"),
									(uint32_t) number(m, "atCol"),
									number(m, "session"),
									number(m, "uid")});
	else if (strcmp(type, "denied") == 0)
		v2_put_denied(to, encoding, (uint32_t) number(m, "row"), (uint32_t) number(m, "col"),
					  (V2Reason) word(m, "reason", v2_reason_names, V2_REASONS));
	else if (strcmp(type, "peer") == 0)
		v2_put_peer(to, encoding, &(V2Peer){number(m, "session"), number(m, "uid"), member(m, "name")},
					flag(m, "here"));
	else if (strcmp(type, "cursors") == 0)
		put_cursors(to, encoding, m);
	else if (strcmp(type, "user") == 0)
		v2_put_user(to, encoding, number(m, "uid"), member(m, "name"));
	else if (strcmp(type, "version") == 0)
		v2_put_version(to, encoding, number(m, "seq"), number(m, "uid"), (V2VersionKind) word(m, "kind", kinds, 2),
					   number(m, "cid"), member(m, "label"), strlen(member(m, "label")));
	else if (strcmp(type, "role") == 0)
		v2_put_role(to, encoding, (V2Role) word(m, "role", roles, 4));
	else if (strcmp(type, "held") == 0)
		v2_put_held(to, encoding, flag(m, "held"), member(m, "holder"), member(m, "application"), number(m, "ms"));
	else if (strcmp(type, "authed") == 0)
		v2_put_authed(to, encoding, number(m, "expires"));
}

static void
check_server(const cJSON *vector)
{
	const char *json = member(vector, "json"), *hex = member(vector, "hex"), *name = member(vector, "name");
	cJSON *message = cJSON_Parse(json);
	Buf text = {NULL, 0, 0}, bytes = {NULL, 0, 0};

	put_server(&text, V2_JSON, message);
	put_server(&bytes, V2_BINARY, message);
	TAP_OK(text.len == strlen(json) && memcmp(text.data, json, text.len) == 0, "%s: JSON %.*s", name, (int) text.len,
		   text.data);
	TAP_OK(strcmp(to_hex(bytes.data, bytes.len), hex) == 0, "%s: binary %s", name, to_hex(bytes.data, bytes.len));
	buf_free(&text);
	buf_free(&bytes);
	cJSON_Delete(message);
}

static void
for_each(const cJSON *vectors, const char *list, int least, void (*check)(const cJSON *vector))
{
	const cJSON *all = cJSON_GetObjectItemCaseSensitive(vectors, list);
	const cJSON *vector;

	TAP_OK(cJSON_GetArraySize(all) >= least, "there are %d vectors of %s", cJSON_GetArraySize(all), list);
	cJSON_ArrayForEach(vector, all) check(vector);
}

/* Readers of a layout stop at its end. */
static void
check_layouts(void)
{
	const V2Layout *layout;
	bool ended = true;

	for (uint64_t type = 1; (layout = v2_layout(type)) != NULL || type < 32; type++)
		ended = ended && (layout == NULL || layout->fields[V2_MAX_FIELDS - 1].name == NULL);
	tap_ok(ended, "layouts", "the fields of each message end within V2_MAX_FIELDS");
}

int
main(void)
{
	char *text = read_file(VECTORS);
	cJSON *vectors = cJSON_Parse(text);

	for_each(vectors, "client", 15, check_client);
	for_each(vectors, "clientOnly", 5, check_client);
	for_each(vectors, "client", 15, check_truncation);
	for_each(vectors, "refused", 7, check_refused);
	for_each(vectors, "malformed", 73, check_malformed);
	for_each(vectors, "server", 24, check_server);
	check_sizes();
	check_layouts();
	cJSON_Delete(vectors);
	free(text);
	return tap_done();
}
