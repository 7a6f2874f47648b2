/*
 * multipart.c - a streaming reader of multipart/form-data (see multipart.h; RFC 2046 5.1, RFC 7578).
 *
 * The states read one byte at a time, except for a part's data, of which everything up to the next CR is passed on at
 * once. The delimiter is "\r\n--" and the boundary. The reader remembers how many of its bytes the last ones match. If
 * they turn out not to be the delimiter, they are passed on as data from the delimiter's own text: so nothing is
 * buffered, and a boundary may straddle reads anywhere. Only the first byte of the delimiter is a CR, so after a
 * mismatch a new match can begin only at that same byte.
 */
#include "http/server/multipart.h"

#include "http/server/head.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum MultipartState
{
	STATE_PREAMBLE,	 /* before the first delimiter: ignored */
	STATE_DELIMITER, /* after a delimiter: blanks and CRLF, or "--" */
	STATE_DELIMITER_LF,
	STATE_LAST_DASH,
	STATE_HEADERS,
	STATE_DATA,
	STATE_EPILOGUE, /* after the closing delimiter: ignored */
	STATE_FAILED,
} MultipartState;

struct Multipart
{
	MultipartEvents events;
	MultipartState state;
	char delimiter[4 + MULTIPART_BOUNDARY_MAX + 1]; /* "\r\n--" boundary */
	size_t delimiter_len;
	size_t matched;	 /* bytes of the delimiter */
	size_t borrowed; /* the first of them that are no data: a CRLF before the body, or the last one of the headers */
	char headers[MULTIPART_HEADERS_MAX + 1];
	size_t headers_len;
	size_t padding; /* blanks after a delimiter */
	const char *error;
};

static const char multipart_long_filename[] = "the name of the file is longer than 255 bytes";

static bool
fail(Multipart *reader, const char *error)
{
	reader->state = STATE_FAILED;
	reader->error = error;
	return false;
}

/* ---- header fields ---- */

static const char *
skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

/* Copies a token or a quoted string. Returns the end of it; NULL if it is malformed or too long. */
static const char *
take_value(const char *text, char *to, size_t size)
{
	size_t len = 0;
	bool quoted = *text == '"';

	for (text += quoted; quoted ? *text != '"' : head_is_token_char(*text); text++)
	{
		/*
		 * Only \" and \\ are escapes: old browsers send C:\file names with single backslashes. Current browsers write
		 * %22 for a quote, which is not decoded.
		 */
		if (quoted && *text == '\\' && (text[1] == '"' || text[1] == '\\'))
			text++;
		if (*text == '\0' || len + 1 >= size)
			return NULL;
		to[len++] = *text;
	}
	to[len] = '\0';
	return text + quoted;
}

/*
 * Takes the next "; name=value", the name in lower case. Returns 1, 0 if there is none, -1 if it is malformed or too
 * long.
 */
static int
take_parameter(const char **text, char *name, size_t name_size, char *value, size_t value_size)
{
	const char *at = skip_blanks(*text);
	size_t len = 0;

	if (*at != ';')
		return *at == '\0' ? 0 : -1;
	while (*at == ';')
		at = skip_blanks(at + 1);
	if (*at == '\0')
		return 0;
	for (; head_is_token_char(*at); at++)
	{
		if (len + 1 >= name_size)
			return -1;
		name[len++] = (char) tolower((unsigned char) *at);
	}
	name[len] = '\0';
	at = skip_blanks(at);
	if (len == 0 || *at != '=')
		return -1;
	at = take_value(skip_blanks(at + 1), value, value_size);
	if (at == NULL)
		return -1;
	*text = at;
	return 1;
}

/* RFC 5987: UTF-8'language'percent-encoded, in place. False for another charset, a bad escape or a NUL. */
static bool
decode_extended(char *value)
{
	char *from = value, *to = value;

	if (strncasecmp(from, "UTF-8'", 6) != 0 || (from = strchr(from + 6, '\'')) == NULL)
		return false;
	for (from++; *from; from++)
	{
		if (*from == '%')
		{
			int byte = head_escaped_byte(from + 1, strnlen(from + 1, 2));

			if (byte <= 0)
				return false;
			*to++ = (char) byte;
			from += 2;
		}
		else
			*to++ = *from;
	}
	*to = '\0';
	return true;
}

typedef struct Part
{
	bool has_disposition, has_name, has_filename, has_extended;
	char name[MULTIPART_NAME_MAX + 1];
	char filename[MULTIPART_NAME_MAX + 1];
	char content_type[MULTIPART_NAME_MAX + 1];
} Part;

static bool
parse_disposition(Multipart *reader, const char *value, Part *part)
{
	char name[32], text[MULTIPART_HEADERS_MAX + 1]; /* longer than a file name may be: the refusal says so */
	const char *at = value + strcspn(value, "; \t");
	int taken;

	if (part->has_disposition)
		return fail(reader, "a part has two Content-Disposition headers");
	part->has_disposition = true;
	if (at - value != 9 || strncasecmp(value, "form-data", 9) != 0)
		return fail(reader, "a part's Content-Disposition is not form-data");
	while ((taken = take_parameter(&at, name, sizeof(name), text, sizeof(text))) > 0)
	{
		bool extended = strcmp(name, "filename*") == 0;

		if (extended && !decode_extended(text))
			return fail(reader, "a part's filename* is not UTF-8 in the form of RFC 5987");
		if (!extended && strcmp(name, "name") != 0 && strcmp(name, "filename") != 0)
			continue;
		if (strlen(text) > MULTIPART_NAME_MAX)
			return fail(reader, strcmp(name, "name") == 0 ? "a part's name is too long" : multipart_long_filename);
		if (strcmp(name, "name") == 0)
		{
			if (part->has_name)
				return fail(reader, "a part has two names");
			part->has_name = true;
			strcpy(part->name, text);
		}
		else if (extended || !part->has_extended) /* filename* is preferred in any order */
		{
			part->has_filename = true;
			part->has_extended = part->has_extended || extended;
			strcpy(part->filename, text);
		}
	}
	if (taken < 0)
		return fail(reader, "a part's Content-Disposition is malformed or too long");
	return true;
}

static bool
parse_header(Multipart *reader, const char *line, Part *part)
{
	const char *colon = strchr(line, ':'), *value;
	size_t len = colon != NULL ? (size_t) (colon - line) : 0;

	if (len == 0)
		return fail(reader, "a part has a malformed header");
	value = skip_blanks(colon + 1);
	if (len == 19 && strncasecmp(line, "Content-Disposition", len) == 0)
		return parse_disposition(reader, value, part);
	if (len == 12 && strncasecmp(line, "Content-Type", len) == 0)
	{
		if (strlen(value) > MULTIPART_NAME_MAX)
			return fail(reader, "a part's Content-Type is too long");
		strcpy(part->content_type, value);
	}
	if (len == 25 && strncasecmp(line, "Content-Transfer-Encoding", len) == 0 && strcasecmp(value, "binary") != 0 &&
		strcasecmp(value, "8bit") != 0 && strcasecmp(value, "7bit") != 0)
		return fail(reader, "a part has a Content-Transfer-Encoding, which form-data must not have");
	return true;
}

/* The headers are complete, ended by an empty line. */
static bool
begin_part(Multipart *reader)
{
	Part part = {0};
	char *line = reader->headers, *end;

	while ((end = strstr(line, "\r\n")) != NULL && end > line)
	{
		*end = '\0';
		if (!parse_header(reader, line, &part))
			return false;
		line = end + 2;
	}
	if (!part.has_name)
		return fail(reader, "a part has no name");
	reader->state = STATE_DATA;
	/* if the part has no data, the CRLF of the empty line belongs to the delimiter */
	reader->matched = reader->borrowed = 2;
	if (!reader->events.begin(reader->events.arg, part.name, part.has_filename ? part.filename : NULL,
							  part.content_type))
		return fail(reader, "the part was refused");
	return true;
}

/* ---- the states ---- */

static bool
feed_header_byte(Multipart *reader, char c)
{
	size_t len = reader->headers_len;

	if (c == '\0')
		return fail(reader, "a part's headers hold a NUL");
	if (len >= MULTIPART_HEADERS_MAX)
		return fail(reader, "a part's headers are too long");
	reader->headers[len++] = c;
	reader->headers[len] = '\0';
	reader->headers_len = len;
	if (c != '\n')
		return true;
	if (len < 2 || reader->headers[len - 2] != '\r')
		return fail(reader, "a part's header line does not end in CRLF");
	if (len == 2 || (len >= 4 && memcmp(reader->headers + len - 4, "\r\n\r\n", 4) == 0))
		return begin_part(reader);
	return true;
}

/* After a delimiter: blanks are padding, "--" closes the body, CRLF begins a part. */
static bool
feed_delimiter_byte(Multipart *reader, char c)
{
	MultipartState before = reader->state;

	reader->headers_len = 0;
	if (before == STATE_LAST_DASH && c == '-')
		reader->state = STATE_EPILOGUE;
	else if (before == STATE_DELIMITER_LF && c == '\n')
		reader->state = STATE_HEADERS;
	else if (before == STATE_DELIMITER && c == '-' && reader->padding == 0)
		reader->state = STATE_LAST_DASH;
	else if (before == STATE_DELIMITER && c == '\r')
		reader->state = STATE_DELIMITER_LF;
	else if (before != STATE_DELIMITER || (c != ' ' && c != '\t') || ++reader->padding > 100)
		return fail(reader, "a boundary is followed by garbage");
	return true;
}

static bool
pass_data(Multipart *reader, const char *data, size_t len)
{
	if (len == 0 || reader->state != STATE_DATA)
		return true;
	return reader->events.data(reader->events.arg, data, len) || fail(reader, "the part was refused");
}

static bool
delimiter_found(Multipart *reader)
{
	bool in_part = reader->state == STATE_DATA;

	reader->state = STATE_DELIMITER;
	reader->padding = 0;
	reader->matched = reader->borrowed = 0;
	if (in_part && !reader->events.end(reader->events.arg))
		return fail(reader, "the part was refused");
	return true;
}

/*
 * Reads data of a part or the preamble up to the end of the delimiter. Returns the number of bytes used; 0 in
 * STATE_FAILED, if a callback refused.
 */
static size_t
feed_data(Multipart *reader, const char *data, size_t len)
{
	size_t i = 0;

	while (i < len)
	{
		size_t plain;

		if (data[i] == reader->delimiter[reader->matched])
		{
			i++;
			if (++reader->matched == reader->delimiter_len)
			{
				delimiter_found(reader);
				return i;
			}
			continue;
		}
		/* the matched bytes were data */
		if (!pass_data(reader, reader->delimiter + reader->borrowed, reader->matched - reader->borrowed))
			return 0;
		reader->matched = reader->borrowed = 0;
		if (data[i] == '\r')
			continue;
		plain = (size_t) ((const char *) (memchr(data + i, '\r', len - i) ?: data + len) - (data + i));
		if (!pass_data(reader, data + i, plain))
			return 0;
		i += plain;
	}
	return i;
}

bool
multipart_feed(Multipart *reader, const char *data, size_t len)
{
	size_t i = 0;

	while (i < len)
	{
		switch (reader->state)
		{
			case STATE_PREAMBLE:
			case STATE_DATA:
				i += feed_data(reader, data + i, len - i);
				break;
			case STATE_DELIMITER:
			case STATE_DELIMITER_LF:
			case STATE_LAST_DASH:
				feed_delimiter_byte(reader, data[i++]);
				break;
			case STATE_HEADERS:
				feed_header_byte(reader, data[i++]);
				break;
			case STATE_EPILOGUE:
				return true;
			case STATE_FAILED:
				return false;
		}
	}
	return reader->state != STATE_FAILED;
}

bool
multipart_done(const Multipart *reader)
{
	return reader->state == STATE_EPILOGUE;
}

const char *
multipart_error(const Multipart *reader)
{
	return reader->error != NULL ? reader->error : "";
}

bool
multipart_has_long_filename(const Multipart *reader)
{
	return reader->error == multipart_long_filename;
}

size_t
multipart_undecided(const Multipart *reader)
{
	return reader->state == STATE_DATA ? reader->matched - reader->borrowed : 0;
}

size_t
multipart_end_length(const Multipart *reader)
{
	return reader->delimiter_len + 2;
}

/* RFC 2046: 1 to 70 characters of a small set, of which the last is no blank. Longer ones are accepted here. */
static bool
is_boundary(const char *boundary)
{
	size_t len = strlen(boundary);

	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char) boundary[i]) && strchr("'()+_,-./:=? ", boundary[i]) == NULL)
			return false;
	return len > 0 && len <= MULTIPART_BOUNDARY_MAX && boundary[len - 1] != ' ';
}

Multipart *
multipart_open(const char *content_type, const MultipartEvents *events)
{
	static const char type[] = "multipart/form-data";
	char name[64], value[1024], boundary[MULTIPART_BOUNDARY_MAX + 1] = "";
	const char *at;
	Multipart *reader;
	int taken;

	content_type = skip_blanks(content_type);
	if (strncasecmp(content_type, type, strlen(type)) != 0)
		return NULL;
	at = content_type + strlen(type);
	while ((taken = take_parameter(&at, name, sizeof(name), value, sizeof(value))) > 0)
		if (strcmp(name, "boundary") == 0)
		{
			if (boundary[0] || !is_boundary(value))
				return NULL;
			strcpy(boundary, value);
		}
	if (taken < 0 || !boundary[0])
		return NULL;
	reader = calloc(1, sizeof(*reader));
	if (reader == NULL)
		return NULL;
	reader->events = *events;
	reader->delimiter_len = (size_t) snprintf(reader->delimiter, sizeof(reader->delimiter), "\r\n--%s", boundary);
	/* at the beginning of the body the delimiter has no CRLF */
	reader->matched = reader->borrowed = 2;
	return reader;
}

void
multipart_close(Multipart *reader)
{
	free(reader);
}
