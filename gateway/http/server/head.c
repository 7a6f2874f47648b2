/*
 * head.c - the head of an HTTP/1.1 request, read strictly (see head.h; RFC 9112, RFC 9110 5).
 */
#include "http/server/head.h"

#include <string.h>
#include <strings.h>

static bool
head_fail(HeadError *error, int status, const char *reason)
{
	error->status = status;
	error->reason = reason;
	return false;
}

/* RFC 9110 5.6.2 */
bool
head_is_token_char(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		   (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

int
head_hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	if (digit >= 'a' && digit <= 'f')
		return digit - 'a' + 10;
	return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

int
head_escaped_byte(const char *digits, size_t len)
{
	int high = len >= 2 ? head_hex_digit(digits[0]) : -1;
	int low = high >= 0 ? head_hex_digit(digits[1]) : -1;

	return low >= 0 ? high << 4 | low : -1;
}

long
head_find_end(const char *bytes, size_t len, size_t *seen)
{
	for (size_t i = *seen; i < len; i++)
	{
		unsigned char c = (unsigned char) bytes[i];

		if (c == '\n' && (i == 0 || bytes[i - 1] != '\r'))
			return -1;
		if (i > 0 && bytes[i - 1] == '\r' && c != '\n')
			return -1;
		if ((c < 0x20 && c != '\t' && c != '\r' && c != '\n') || c == 0x7F)
			return -1;
		if (c == '\n' && i >= 3 && bytes[i - 2] == '\n')
			return (long) i + 1;
	}
	*seen = len;
	return 0;
}

/* ---- the request line ---- */

typedef enum DecodedPart
{
	DECODED_PATH,  /* without control characters */
	DECODED_QUERY, /* the same, and "+" is a blank */
	DECODED_FORM   /* any character but NUL, and "+" is a blank */
} DecodedPart;

static bool
is_decoded(unsigned char c, DecodedPart part)
{
	return part == DECODED_FORM ? c != '\0' : c >= 0x20 && c != 0x7F;
}

/*
 * Decodes %XX and appends a NUL. `to` may be `from` or lie before it. False for a malformed escape, a character that
 * the part may not have, or if the result needs more than `size` bytes.
 */
static bool
decode_percent(const char *from, size_t len, DecodedPart part, char *to, size_t size)
{
	const char *end = to + size;

	for (size_t i = 0; i < len; i++)
	{
		char c = from[i];

		if (c == '%')
		{
			int byte = head_escaped_byte(from + i + 1, len - i - 1);

			if (byte < 0)
				return false;
			c = (char) byte;
			i += 2;
		}
		else if (part != DECODED_PATH && c == '+')
			c = ' ';
		if (!is_decoded((unsigned char) c, part) || end - to <= 1)
			return false;
		*to++ = c;
	}
	*to = '\0';
	return true;
}

/* Length of the host and port at the beginning of the text. */
static size_t
authority_len(const char *text)
{
	return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789.-_:[]");
}

/*
 * Clients of proxies send the absolute form, http://host/path; servers must accept it as well (RFC 9112 3.2.2). Only
 * characters of a host are skipped, so the slash that must follow is missing after anything else.
 */
static char *
skip_authority(char *target)
{
	size_t scheme = strncasecmp(target, "http://", 7) == 0 ? 7 : strncasecmp(target, "https://", 8) == 0 ? 8 : 0;

	return scheme > 0 ? target + scheme + authority_len(target + scheme) : target;
}

/* room: for the decoded path. */
static bool
parse_target(Head *head, char *target, char *room, HeadError *error)
{
	size_t path_len;

	for (const char *c = target; *c != '\0'; c++)
	{
		if (*c < 0x21 || *c > 0x7E)
			return head_fail(error, 400, "the address holds characters that must be percent-encoded");
	}
	head->target = target = skip_authority(target);
	if (*target != '/' && !(strcmp(target, "*") == 0 && strcmp(head->method, "OPTIONS") == 0))
		return head_fail(error, 400, "the address must begin with a slash");
	path_len = strcspn(target, "?");
	head->query = target[path_len] == '?' ? target + path_len + 1 : "";
	if (!decode_percent(target, path_len, DECODED_PATH, room, path_len + 1))
		return head_fail(error, 400, "the path holds a malformed escape or a control character");
	head->path = room;
	return true;
}

static bool
parse_version(Head *head, const char *version, HeadError *error)
{
	if (strcmp(version, "HTTP/1.1") == 0 || strcmp(version, "HTTP/1.0") == 0)
	{
		head->minor = version[7] - '0';
		return true;
	}
	if (strncmp(version, "HTTP/", 5) == 0 && version[5] >= '0' && version[5] <= '9' && version[6] == '.' &&
		version[7] >= '0' && version[7] <= '9' && version[8] == '\0')
		return head_fail(error, 505, "only HTTP/1.1 and HTTP/1.0 are spoken here");
	return head_fail(error, 400, "the request line is not METHOD ADDRESS HTTP/1.1");
}

/* line ends with NUL. */
static bool
parse_request_line(Head *head, char *line, size_t url_max, char *room, HeadError *error)
{
	char *target = strchr(line, ' ');
	char *version = target != NULL ? strchr(target + 1, ' ') : NULL;

	if (version == NULL || target == line || version == target + 1)
		return head_fail(error, 400, "the request line is not METHOD ADDRESS HTTP/1.1");
	*target++ = '\0';
	*version++ = '\0';
	head->method = line;
	for (const char *c = line; *c != '\0'; c++)
	{
		if (!head_is_token_char(*c))
			return head_fail(error, 400, "the method is malformed");
	}
	if ((size_t) (version - target) > url_max)
		return head_fail(error, 414, "the address is longer than max-url-bytes");
	return parse_version(head, version, error) && parse_target(head, target, room, error);
}

/* ---- fields ---- */

/* line ends with NUL: name, colon, value between optional blanks. */
static bool
parse_field(Head *head, char *line, HeadError *error)
{
	char *name = line, *value, *end;

	if (*line == ' ' || *line == '\t')
		return head_fail(error, 400, "a header line is folded");
	for (; head_is_token_char(*line); line++)
	{
		if (*line >= 'A' && *line <= 'Z')
			*line = (char) (*line + ('a' - 'A'));
	}
	if (line == name || *line != ':')
		return head_fail(error, 400, "a header line is not NAME: VALUE");
	*line = '\0';
	value = line + 1 + strspn(line + 1, " \t");
	for (end = value + strlen(value); end > value && (end[-1] == ' ' || end[-1] == '\t'); end--)
		;
	*end = '\0';
	if (head->field_count == HEAD_FIELDS_MAX)
		return head_fail(error, 431, "the request has more than 100 header lines");
	head->fields[head->field_count++] = (HeadField){name, value};
	return true;
}

const char *
head_field(const Head *head, const char *name)
{
	for (int i = 0; i < head->field_count; i++)
	{
		if (strcmp(head->fields[i].name, name) == 0)
			return head->fields[i].value;
	}
	return NULL;
}

/* Is the word an element of the comma-separated list? Ignores case. */
static bool
head_list_has(const char *list, const char *word)
{
	size_t word_len = strlen(word);

	while (list != NULL && *list != '\0')
	{
		size_t len;

		list += strspn(list, ", \t");
		len = strcspn(list, ", \t;");
		if (len == word_len && strncasecmp(list, word, len) == 0)
			return true;
		list += strcspn(list, ",");
	}
	return false;
}

/* ---- meaning of the fields ---- */

/* Fields that may occur once: with two, it would be open which one is valid. */
static bool
check_once(const Head *head, HeadError *error)
{
	static const char *const once[] = {"host",	 "content-length",	  "transfer-encoding",	   "authorization",
									   "origin", "sec-websocket-key", "sec-websocket-version", "content-type"};

	for (size_t i = 0; i < sizeof(once) / sizeof(once[0]); i++)
	{
		int count = 0;

		for (int k = 0; k < head->field_count; k++)
			count += strcmp(head->fields[k].name, once[i]) == 0;
		if (count > 1)
			return head_fail(error, 400, "a header that frames or authorizes the request stands twice");
	}
	return true;
}

static bool
check_host(const Head *head, HeadError *error)
{
	const char *host = head_field(head, "host");

	if (host == NULL && head->minor > 0)
		return head_fail(error, 400, "Host is missing");
	if (host == NULL)
		return true;
	return host[authority_len(host)] == '\0' || head_fail(error, 400, "Host is malformed");
}

static bool
check_framing(Head *head, HeadError *error)
{
	const char *length = head_field(head, "content-length");
	const char *coding = head_field(head, "transfer-encoding");

	head->content_length = -1;
	if (coding != NULL)
	{
		if (length != NULL)
			return head_fail(error, 400, "Content-Length and Transfer-Encoding exclude each other");
		if (head->minor == 0)
			return head_fail(error, 400, "HTTP/1.0 has no Transfer-Encoding");
		if (strcasecmp(coding, "chunked") != 0)
			return head_fail(error, 501, "the only Transfer-Encoding is chunked");
		head->chunked = true;
	}
	if (length == NULL)
		return true;
	if (*length == '\0' || strlen(length) > 18 || strspn(length, "0123456789") != strlen(length))
		return head_fail(error, 400, "Content-Length is not a number");
	head->content_length = 0;
	for (; *length != '\0'; length++)
		head->content_length = head->content_length * 10 + (*length - '0');
	return true;
}

bool
head_has_word(const Head *head, const char *name, const char *word)
{
	for (int i = 0; i < head->field_count; i++)
	{
		if (strcmp(head->fields[i].name, name) == 0 && head_list_has(head->fields[i].value, word))
			return true;
	}
	return false;
}

static bool
check_connection(Head *head, HeadError *error)
{
	const char *expect = head_field(head, "expect");

	head->close = head_has_word(head, "connection", "close") ||
				  (head->minor == 0 && !head_has_word(head, "connection", "keep-alive"));
	head->upgrade = head_field(head, "upgrade") != NULL && head_has_word(head, "connection", "upgrade");
	if (expect == NULL || head->minor == 0)
		return true;
	if (strcasecmp(expect, "100-continue") != 0)
		return head_fail(error, 417, "the only expectation that is met is 100-continue");
	head->expect_continue = true;
	return true;
}

bool
head_parse(Head *head, char *bytes, size_t len, size_t url_max, HeadError *error)
{
	char *line = bytes, *next;
	bool first = true;

	memset(head, 0, sizeof(*head));
	head->content_length = -1;
	bytes[len] = '\0';
	for (; (next = strstr(line, "\r\n")) != NULL && next > line; line = next + 2)
	{
		*next = '\0';
		if (first ? !parse_request_line(head, line, url_max, bytes + len + 1, error) : !parse_field(head, line, error))
			return false;
		first = false;
	}
	if (first)
		return head_fail(error, 400, "the request line is missing");
	return check_once(head, error) && check_host(head, error) && check_framing(head, error) &&
		   check_connection(head, error);
}

/* ---- the query ---- */

#define HEAD_ARGS_MAX 32

/* The value of the first argument of the name, not decoded, and its length. NULL: there is none. */
static const char *
query_find(const char *query, const char *name, bool needs_value, size_t *len)
{
	size_t name_len = strlen(name);

	for (; *query != '\0'; query += *query == '&')
	{
		size_t item = strcspn(query, "&");
		bool has_value = item > name_len && query[name_len] == '=';

		if (item >= name_len && memcmp(query, name, name_len) == 0 && (has_value || (item == name_len && !needs_value)))
		{
			*len = has_value ? item - name_len - 1 : 0;
			return query + name_len + has_value;
		}
		query += item;
	}
	return NULL;
}

bool
head_query_arg(const char *query, const char *name, char *to, size_t size)
{
	size_t len;
	const char *value = query_find(query, name, true, &len);

	return value != NULL && decode_percent(value, len, DECODED_QUERY, to, size);
}

HeadArg
head_form_arg(const char *form, const char *name, char *to, size_t size)
{
	size_t len;
	const char *value = query_find(form, name, true, &len);

	if (value == NULL)
		return HEAD_ABSENT;
	return decode_percent(value, len, DECODED_FORM, to, size) ? HEAD_FOUND : HEAD_MALFORMED;
}

bool
head_query_has(const char *query, const char *name)
{
	size_t len;

	return query_find(query, name, false, &len) != NULL;
}

bool
head_query_repeats(const char *query)
{
	int count = 0;

	for (; *query != '\0'; query += *query == '&')
	{
		size_t item = strcspn(query, "&"), name = strcspn(query, "=&");

		count += item > 0;
		if (count > HEAD_ARGS_MAX)
			return true;
		for (const char *other = query + item; name > 0 && *other != '\0'; other += strcspn(other, "&"))
		{
			other++;
			if (strcspn(other, "=&") == name && memcmp(other, query, name) == 0)
				return true;
		}
		query += item;
	}
	return false;
}

/* ---- codings ---- */

/* "q=0.5" among the parameters of a coding, in thousandths: 1000 if there is none, 0 if it is malformed. */
static int
head_weight(const char *params, size_t len)
{
	for (size_t i = 0; i + 1 < len; i++)
	{
		int weight, digits = 0;

		if ((params[i] != 'q' && params[i] != 'Q') || params[i + 1] != '=')
			continue;
		i += 2;
		if (i >= len || (params[i] != '0' && params[i] != '1'))
			return 0;
		weight = (params[i] - '0') * 1000;
		if (++i < len && params[i] == '.')
		{
			int step = 100;

			for (i++; i < len && params[i] >= '0' && params[i] <= '9' && digits++ < 3; i++, step /= 10)
				weight += (params[i] - '0') * step;
		}
		return weight > 1000 ? 0 : weight;
	}
	return 1000;
}

int
head_quality(const char *accepted, const char *coding)
{
	int any = 0;

	for (const char *item = accepted; item != NULL && *item != '\0';)
	{
		size_t len, name_len;

		item += strspn(item, ", \t");
		len = strcspn(item, ",");
		name_len = strcspn(item, ",; \t");
		if (name_len == strlen(coding) && strncasecmp(item, coding, name_len) == 0)
			return head_weight(item + name_len, len - name_len);
		if (name_len == 1 && *item == '*')
			any = head_weight(item + name_len, len - name_len);
		item += len;
	}
	return any;
}
